"""Spark reads, merges into and compacts a table that was made whole without it."""

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc.lake.create.whole_table import replace_table

pytestmark = pytest.mark.spark

PROPERTIES: Final = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}


def field(name: str, of: str) -> dict[str, Any]:
    return {"name": name, "type": of, "nullable": True, "metadata": {}}


def test_spark_goes_on_with_it(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    replace_table(path, [field("old", "long")], PROPERTIES, pa.table({"old": [1]}), "")
    rows = pa.table({"id": [1, 2, 3], "name": ["a", None, "c"]})
    replace_table(path, [field("id", "long"), field("name", "string")], PROPERTIES, rows, "a mark")

    def read() -> list[tuple[Any, ...]]:
        return sorted(map(tuple, spark.read.format("delta").load(path).collect()))

    assert read() == [(1, "a"), (2, None), (3, "c")]
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 2")
    spark.sql(f"INSERT INTO delta.`{path}` VALUES (4, 'd')")
    spark.sql(f"REORG TABLE delta.`{path}` APPLY (PURGE)")
    assert read() == [(1, "a"), (3, "c"), (4, "d")]
    assert spark.read.format("delta").option("versionAsOf", 0).load(path).first() == (1,)
    assert DeltaTable(path).history()[-2]["userMetadata"] == "a mark"
