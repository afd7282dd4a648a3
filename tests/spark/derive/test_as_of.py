"""Spark finds the same versions of a table as it was as DuckDB does."""

from contextlib import closing
from pathlib import Path
from random import Random

from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc.client.derived.by_spark import compare_in_spark
from cdc.derive.engine.input import Input
from cdc.tables import TableId
from tests.unit.derive.as_of.test_as_of import QUERIES, begin, happen, wanted
from tests.unit.derive.as_of.timeline import Timeline


def test_equal_rows_are_equal(spark: SparkSession, tmp_path: Path) -> None:
    random = Random(1)
    with closing(Timeline(tmp_path, QUERIES)) as line:
        begin(line, random)
        for _ in range(12):
            happen(line, random)
        assert line.cut() == wanted(line)

        def newest(table: TableId) -> Input:
            path = line.lake.path(table)
            return Input(path, DeltaTable(path).version())

        for one in line.definitions:
            inputs = {table: newest(table) for table in one.inputs}
            found = compare_in_spark(spark, one, inputs, newest(one.table))
            assert found.equal, found
            assert found.rows == len(wanted(line)[str(one.table)])
