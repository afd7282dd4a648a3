"""Chooses how Spark runs a batch: without generated code where there are few events.

Every table has its own plans, so most code would be generated, compiled and run just once. For a
few events that takes longer than interpreting the plan, and adaptive planning does not pay either.
The settings belong to one session, which nothing else uses meanwhile.
"""

from typing import Final

from pyspark.sql import SparkSession

FEW: Final = 10_000
"""Events up to which a plan is interpreted."""
WHOLE_FILES: Final = FEW + 1
"""Stands for work on whole files, which may be large."""

_SETTINGS: Final = {  # of few events, of many
    "spark.sql.codegen.wholeStage": ("false", "true"),
    "spark.sql.codegen.factoryMode": ("NO_CODEGEN", "FALLBACK"),
    "spark.sql.adaptive.enabled": ("false", "true"),
}


def suit(session: SparkSession, events: int) -> None:
    """Set the session up for so many events; settings named in ``spark.conf`` are not touched."""
    given = session.sparkContext.getConf()
    for name, (few, many) in _SETTINGS.items():
        if not given.contains(name):
            session.conf.set(name, few if events <= FEW else many)
