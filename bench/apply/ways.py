"""The ways that are compared, in the order of the issue."""

from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from bench.apply.base import OURS, PLAIN
from bench.apply.driver import DriverApplier
from bench.apply.on_delta_rs import DeltaRsMerge
from bench.apply.on_spark import (
    IcebergMerge,
    OursOnSpark,
    ReplaceUsing,
    TunedMerge,
    TutorialMerge,
)
from bench.apply.way import Way

DRIVER: Final = "driver"
ICEBERG_CATALOGUE: Final = "ice"


def ways(spark: SparkSession, *, iceberg: bool) -> list[Way]:
    """Return the ways that can be measured."""
    found = [
        Way(name=DRIVER, kind=OURS, open_on=DriverApplier, is_slow=False),
        Way(name="Spark", kind=OURS, open_on=lambda path: OursOnSpark(spark, path)),
        Way(name="tuned MERGE", kind=OURS, open_on=lambda path: TunedMerge(spark, path)),
        Way(name="tutorial MERGE", kind=PLAIN, open_on=lambda path: TutorialMerge(spark, path)),
        Way(name="delta-rs merge", kind=PLAIN, open_on=DeltaRsMerge),
        Way(
            name="replaceUsing",
            kind=OURS,
            open_on=lambda path: ReplaceUsing(spark, path),
            upserts_only=True,
            note="upserts only: it cannot delete",
        ),
    ]
    if iceberg:
        found.append(
            Way(name="Iceberg MERGE", kind=PLAIN, open_on=lambda path: on_iceberg(spark, path))
        )
    return found


def on_iceberg(spark: SparkSession, path: Path) -> IcebergMerge:
    """Copy the table into Iceberg's own."""
    table = f"{ICEBERG_CATALOGUE}.bench.rows"
    spark.sql(f"DROP TABLE IF EXISTS {table}")
    properties = ", ".join(
        f"'write.{what}.mode' = 'merge-on-read'" for what in ("merge", "update", "delete")
    )
    rows = f"SELECT * FROM delta.`{path}`"  # noqa: S608 - our names
    spark.sql(
        f"CREATE TABLE {table} USING iceberg"
        f" TBLPROPERTIES ('format-version' = '2', {properties}) AS {rows}"
    )
    return IcebergMerge(spark, table)
