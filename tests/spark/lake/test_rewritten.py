"""Rows that the job rewrites have the values that Spark's casts and literals give, by type."""

from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from cdc.errors import CdcError
from cdc.events.schema import Column, TableSchema
from cdc.events.structure.steps import AddColumn, WidenColumn
from cdc.lake.alter import evolve, rewrite
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.data_file import arrow_schema
from cdc.lake.create.table import create
from cdc.lake.table import store
from cdc.lake.table.merge_plan import COPY, OFFSET, ROW_HASH
from cdc.lake.table.positions import Position, position
from cdc.lake.table.row_hash import row_hash
from cdc.tables import TableId, TableMode
from tests.local_spark import frame_of
from tests.spark.recorded_pipeline import read_rows

pytestmark = pytest.mark.spark

TABLE: Final = TableId("public", "t")
BEFORE: Final = Position(epoch=1, offset=3)
AFTER: Final = Position(epoch=1, offset=3, steps=1)
WIDENED: Final = (
    ("smallint", "int", (-32768, 7)),
    ("smallint", "bigint", (32767, 0)),
    ("int", "bigint", (-(2**31), 2**31 - 1)),
    ("int", "decimal(12,2)", (-(2**31), 0)),
    ("bigint", "decimal(38,0)", (-(2**63), 2**63 - 1)),
    ("decimal(5,2)", "decimal(9,4)", (Decimal("-999.99"), Decimal("0.01"))),
    ("decimal(5,2)", "decimal(38,2)", (Decimal("999.99"), Decimal(0))),
    ("float", "double", (0.1, 1e-45)),
    ("float", "double", (float("inf"), -0.0)),
    ("date", "timestamp_ntz", (-719162, 2932896)),
    ("bigint", "string", (-7, 2**62)),
    ("smallint", "string", (0, -32768)),
)
FILLED: Final = (
    ("string", 'Dear ${name}, it\'s `a` \\ "b"\n%'),
    ("string", ""),
    ("smallint", "-32768"),
    ("bigint", "9223372036854775807"),
    ("decimal(38,10)", "-1234567890123456789012345678.0123456789"),
    ("decimal(5,2)", "1.5"),
    ("double", "NaN"),
    ("double", "-Infinity"),
    ("double", "-0"),
    ("double", "0.1"),
    ("double", "1.7976931348623157e+308"),
    ("double", "5e-324"),
    ("boolean", "t"),
    ("boolean", "false"),
    ("binary", "\\x00ff"),
    ("binary", "\\x"),
    ("date", "0001-01-01"),
    ("date", "9999-12-31"),
    ("timestamp_ntz", "0001-01-01 00:00:00.000001"),
    ("timestamp_ntz", "2020-02-29 23:59:59.5"),
    ("timestamp", "9999-12-31 23:59:59.999999+00"),
    ("timestamp", "2020-02-29 12:00:00+00"),
)


def made(spark: SparkSession, path: str, *columns: tuple[str, tuple[Any, ...]]) -> TableSchema:
    """Create a table with these columns, nulls, and a row that a deletion vector has deleted."""
    named = [Column(f"v{number}", kind) for number, (kind, _) in enumerate(columns)]
    schema = TableSchema(
        table=TABLE, columns=(Column("id", "int"), *named), key=("id",), mode=TableMode.KEYED
    )
    create(spark, path, schema, BEFORE)
    values = [(*values, None, values[0]) for _, values in columns]
    rows = [(number, *row, 3) for number, row in enumerate(zip(*values, strict=True))]
    plain = [(c.name, "int" if c.type == "date" else c.type) for c in named]
    listed = ", ".join(f"{name} {kind}" for name, kind in plain)
    dates = [
        f"date_add(DATE'1970-01-01', {c.name}) AS {c.name}" if c.type == "date" else c.name
        for c in named
    ]
    frame = frame_of(spark, rows, f"id int, {listed}, {OFFSET} bigint")
    store.append(path, frame.selectExpr("id", *dates, OFFSET).coalesce(1), BEFORE)
    committer = Committer(path)
    table = committer.open()
    (file,) = table.files
    committer.commit(arrow_schema(table.metadata).empty_table(), {file: [len(rows) - 1]}, BEFORE)
    return schema


def seen(path: str) -> list[str]:
    return [repr(row) for row in read_rows(path, "SELECT * FROM t ORDER BY id")]


def by_spark(spark: SparkSession, path: str, *texts: str, version: int | None = None) -> list[str]:
    """Return what Spark makes of the texts of SQL, row by row."""
    rows = store.read(spark, path, version).orderBy("id").selectExpr("id", *texts)
    return [repr(row) for row in rows.toArrow().to_pylist()]


def engines(path: str, count: int) -> set[str]:
    """Return who has made the newest commits."""
    return {str(commit["engineInfo"]) for commit in DeltaTable(path).history(count)}


def test_of_wider_types(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    schema = made(spark, path, *((kind, values) for kind, _, values in WIDENED))
    before = DeltaTable(path).version()

    for number, (_, wider, _) in enumerate(WIDENED):
        schema = evolve.take_step(
            spark, path, schema, WidenColumn(f"v{number}", wider), AFTER.metadata()
        )

    assert engines(path, len(WIDENED)) == {"wal2lake"}
    assert position(path) == AFTER
    assert store.read_schema(path, TABLE) == schema
    casts = [f"CAST(v{n} AS {wider}) AS v{n}" for n, (_, wider, _) in enumerate(WIDENED)]
    names = [f"v{number}" for number in range(len(WIDENED))]
    assert by_spark(spark, path, *names) == by_spark(spark, path, *casts, version=before)
    assert len(seen(path)) == 3
    DeltaTable(path).create_checkpoint()
    assert by_spark(spark, path, *names) == by_spark(spark, path, *casts, version=before)


def test_of_values_for_older_rows(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    schema = made(spark, path, ("int", (1, 2)))

    for number, (kind, text) in enumerate(FILLED):
        step = AddColumn(Column(f"new{number}", kind), text)
        schema = evolve.take_step(spark, path, schema, step, AFTER.metadata())

    assert engines(path, len(FILLED) * 2) == {"wal2lake"}
    literals = [
        f"{evolve.spark_literal(text, kind)} AS new{n}" for n, (kind, text) in enumerate(FILLED)
    ]
    names = [f"new{number}" for number in range(len(FILLED))]
    assert by_spark(spark, path, *names) == by_spark(spark, path, *literals)
    assert len(seen(path)) == 3


def test_of_hashes_of_the_columns_that_are_left(spark: SparkSession, tmp_path: Path) -> None:
    columns = (Column("a", "string"), Column("d", "decimal(9,2)"), Column("t", "timestamp"))
    schema = TableSchema(table=TABLE, columns=columns, key=(), mode=TableMode.MULTISET)
    path = str(tmp_path / "t")
    create(spark, path, schema, BEFORE)
    frame = spark.sql(
        "SELECT a, d, t FROM VALUES ('x', 1.5BD, TIMESTAMP'2020-01-01 00:00:00'), ('x', 1.5BD, "
        "TIMESTAMP'2020-01-01 00:00:00'), (NULL, NULL, NULL), ('', NULL, NULL) AS t(a, d, t)"
    ).selectExpr("a", "CAST(d AS decimal(9,2)) AS d", "t", f"3L AS {OFFSET}")
    wrong = frame.selectExpr("*", f"'old' AS {ROW_HASH}", f"9L AS {COPY}")
    store.append(path, wrong, BEFORE)

    evolve.rehash_rows(spark, path, schema, AFTER.metadata())

    assert engines(path, 1) == {"wal2lake"}
    found = store.read(spark, path)
    rows = found.selectExpr(ROW_HASH, f"{row_hash(schema)} AS expected", COPY).collect()
    assert all(row[ROW_HASH] == row["expected"] for row in rows)
    assert sorted(row[COPY] for row in rows) == [1, 1, 1, 2]


def test_a_large_table_is_spark_s(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    schema = made(spark, path, ("int", (1, 2)))
    monkeypatch.setattr(rewrite, "MOST_BYTES", 10)

    evolve.take_step(spark, path, schema, WidenColumn("v0", "bigint"), AFTER.metadata())

    assert "wal2lake" not in engines(path, 1)
    assert len(seen(path)) == 3


def test_a_value_that_nobody_reads_stops_the_table(spark: SparkSession, tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    schema = made(spark, path, ("int", (1, 2)))

    with pytest.raises(CdcError, match="non-empty array"):
        evolve.take_step(
            spark, path, schema, AddColumn(Column("new", "array<int>"), "{1}"), AFTER.metadata()
        )
