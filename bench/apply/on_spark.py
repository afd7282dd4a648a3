"""Defines the ways by Spark: ours, a tuned MERGE, that of tutorials, replaceUsing, Iceberg's."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from bench.apply.base import COLUMNS, SCHEMA
from bench.apply.summary import delta_summary
from bench.apply.way import after
from cdc.lake.table import store
from cdc.lake.table.merge_plan import DELETED, OFFSET, merge_plan

NAMES: Final = (*COLUMNS, OFFSET)
VALUES: Final = {name: f"s.`{name}`" for name in NAMES}
TUTORIAL_SETTINGS: Final = {
    # Spark's and Delta's own defaults, which the job's session lowers for small batches.
    "spark.sql.shuffle.partitions": "200",
    "spark.databricks.delta.snapshotPartitions": "50",
}


class OursOnSpark:
    """Applies by the MERGE of the job, with position and guard."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self._spark, self._path = spark, path
        self._plan = merge_plan(SCHEMA, keep=False)

    def apply(self, batch: Path, low: int, high: int) -> None:  # noqa: ARG002
        """Merge by the plan of the job."""
        revision = int(pq.read_table(batch, columns=["revision"])["revision"][0].as_py())
        rows = self._spark.read.parquet(str(batch)).withColumnRenamed("deleted", DELETED)
        store.merge(self._spark, str(self._path), rows, self._plan, after(revision))

    def summary(self) -> tuple[int, int]:
        """Return what delta-rs reads."""
        return delta_summary(self._path)


class TunedMerge:
    """Applies by a MERGE with deletion vectors, few partitions and literal bounds of the keys."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self._spark, self._path = spark, path

    def apply(self, batch: Path, low: int, high: int) -> None:
        """Merge; the bounds let Delta leave files out."""
        _merge(self._spark, self._path, batch, f"t.id = s.id AND t.id BETWEEN {low} AND {high}")

    def summary(self) -> tuple[int, int]:
        """Return what delta-rs reads."""
        return delta_summary(self._path)


class TutorialMerge:
    """A MERGE as most tutorials have it: default settings, a table without deletion vectors."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self._spark, self._path = spark, path

    def apply(self, batch: Path, low: int, high: int) -> None:  # noqa: ARG002
        """Merge with the defaults of Spark and Delta."""
        with _settings(self._spark, TUTORIAL_SETTINGS):
            _merge(self._spark, self._path, batch, "t.id = s.id")

    def summary(self) -> tuple[int, int]:
        """Return what delta-rs reads."""
        return delta_summary(self._path)


class ReplaceUsing:
    """Delta's replaceUsing: rows with the keys of the source are replaced; it cannot delete."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self._spark, self._path = spark, path

    def apply(self, batch: Path, low: int, high: int) -> None:  # noqa: ARG002
        """Replace the rows that are written; deletes are left out."""
        rows = self._spark.read.parquet(str(batch)).where("not deleted").select(*NAMES)
        writer = rows.write.format("delta").mode("overwrite").option("replaceUsing", "id")
        writer.save(str(self._path))

    def summary(self) -> tuple[int, int]:
        """Return what delta-rs reads."""
        return delta_summary(self._path)


class IcebergMerge:
    """Iceberg's MERGE, merge-on-read, in a catalogue that is a directory."""

    def __init__(self, spark: SparkSession, table: str) -> None:
        self._spark, self._table = spark, table

    def apply(self, batch: Path, low: int, high: int) -> None:
        """Merge with literal bounds, as the tuned one."""
        self._spark.read.parquet(str(batch)).createOrReplaceTempView("changes")
        columns = ", ".join(f"`{name}`" for name in NAMES)
        updates = ", ".join(f"t.`{name}` = s.`{name}`" for name in NAMES)
        inserts = ", ".join(VALUES.values())
        self._spark.sql(
            f"MERGE INTO {self._table} t USING changes s"  # noqa: S608 - our names
            f" ON t.id = s.id AND t.id BETWEEN {low} AND {high}"
            " WHEN MATCHED AND s.deleted THEN DELETE"
            f" WHEN MATCHED THEN UPDATE SET {updates}"
            f" WHEN NOT MATCHED AND NOT s.deleted THEN INSERT ({columns}) VALUES ({inserts})"
        )

    def summary(self) -> tuple[int, int]:
        """Return what Spark reads of it."""
        text = f"select count(*), sum(revision) from {self._table}"  # noqa: S608 - our name
        count, revisions = self._spark.sql(text).collect()[0]
        return int(count), int(revisions or 0)


def _merge(spark: SparkSession, path: Path, batch: Path, condition: str) -> None:
    source: DataFrame = spark.read.parquet(str(batch))
    (
        DeltaTable.forPath(spark, str(path))
        .alias("t")
        .merge(source.alias("s"), condition)
        .whenMatchedDelete("s.deleted")
        .whenMatchedUpdate(set=dict(VALUES))
        .whenNotMatchedInsert("not s.deleted", values=dict(VALUES))
        .execute()
    )


@contextmanager
def _settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    before = {name: spark.conf.get(name) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.set(name, str(old))
