"""How Spark runs a batch: without generated code where there are few events.

Each table has plans of its own, so that most code would be generated, compiled and run once. For
few events that takes longer than to interpret the plan, and to plan anew by what was found midway
is of no use either. The settings are those of one session, which nothing else uses meanwhile.
"""

from typing import Final

from pyspark.sql import SparkSession

FEW: Final = 10_000
"""Events up to which a plan is interpreted."""
WHOLE_FILES: Final = FEW + 1
"""Of work on whole files, which may be large."""

_SETTINGS: Final = {  # of few events, of many
    "spark.sql.codegen.wholeStage": ("false", "true"),
    "spark.sql.codegen.factoryMode": ("NO_CODEGEN", "FALLBACK"),
    "spark.sql.adaptive.enabled": ("false", "true"),
}


def suit(session: SparkSession, events: int) -> None:
    """Set the session for a batch of so many events; what ``spark.conf`` names stays as it is."""
    given = session.sparkContext.getConf()
    for name, (few, many) in _SETTINGS.items():
        if not given.contains(name):
            session.conf.set(name, few if events <= FEW else many)
