"""Structure steps with several commits: new column types, and interruptions between commits."""

import json
from datetime import date, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from cdc.events.schema import Column, TableSchema
from cdc.events.structure.steps import (
    AddColumn,
    ChangeKey,
    DropColumn,
    RenameColumn,
    Step,
    WidenColumn,
)
from cdc.lake.alter import alter, evolve
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.table import store
from cdc.lake.table.positions import Position, position
from cdc.tables import TableId, TableMode

pytestmark = pytest.mark.spark

TABLE = TableId("public", "t")
BEFORE = Position(epoch=1, offset=3)
TEXT = 'Dear ${env:HOME} ${name}, it\'s `a` \\ "b"\n%'
AFTER = Position(epoch=1, offset=3, steps=1)
NOON = datetime(2020, 1, 1, 12)  # noqa: DTZ001 - it has no zone
ANOTHER = (
    "SELECT 2 AS id, DATE'2020-03-01' AS `Day of ``it```, 4L AS _cdc_offset, "
    "TIMESTAMP_NTZ'2020-01-01 12:00:00' AS at, 'x' AS day"
)


class Interrupted(Exception):  # noqa: N818 - an event, not an error
    """Simulates the end of the process."""


@pytest.fixture(params=["by the driver", "by Spark"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return who alters tables and rewrites their rows."""
    if request.param == "by Spark":
        monkeypatch.setattr(alter, "alter_without_spark", _left_to_spark)
        monkeypatch.setattr(evolve, "rewrite_without_spark", _left_to_spark)
    return str(request.param)


def _left_to_spark(*_: object) -> int:
    raise TakeMergeError("a test")


@pytest.fixture
def path(spark: SparkSession, tmp_path: Path) -> str:
    """Create a table of one row, without a timestamp column."""
    columns = (Column("id", "int"), Column("day", "date"))
    schema = TableSchema(table=TABLE, columns=columns, key=("id",), mode=TableMode.KEYED)
    path = str(tmp_path / "t")
    store.create(spark, path, schema, BEFORE)
    row = spark.sql("SELECT 1 AS id, DATE'2020-02-29' AS day, 3L AS _cdc_offset")
    store.append(path, row, BEFORE)
    return path


def do(spark: SparkSession, path: str, step: Step) -> TableSchema:
    schema = store.read_schema(path, TABLE)
    assert schema is not None
    return evolve.take_step(spark, path, schema, step, AFTER.metadata())


def fields(path: str) -> list[tuple[str, Any, int]]:
    """Return name, type and id of the columns."""
    described = json.loads(DeltaTable(path).schema().to_json())["fields"]
    return [(f["name"], f["type"], f["metadata"]["delta.columnMapping.id"]) for f in described]


def operations(path: str) -> list[str]:
    """Return the operations of all commits, the newest first."""
    return [commit["operation"] for commit in DeltaTable(path).history()]


def rows(path: str) -> list[dict[str, Any]]:
    """Return the rows, read by delta-rs."""
    query = QueryBuilder().register("t", DeltaTable(path)).execute("SELECT * FROM t")
    rows: list[dict[str, Any]] = pa.table(query.read_all()).to_pylist()
    return rows


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (AddColumn(Column("at", "timestamp_ntz")), {"at": None}),
        (
            AddColumn(Column("at", "timestamp_ntz"), "2020-01-02 03:04:05.678901"),
            {"at": datetime(2020, 1, 2, 3, 4, 5, 678901)},  # noqa: DTZ001 - it has no zone
        ),
        (AddColumn(Column("said", "string"), TEXT), {"said": TEXT}),
        (AddColumn(Column(TEXT, "string"), TEXT), {TEXT: TEXT}),
        (AddColumn(Column("filepath", "string"), "a"), {"filepath": "a"}),
        (WidenColumn("day", "timestamp_ntz"), {"day": datetime(2020, 2, 29)}),  # noqa: DTZ001
    ],
    ids=["added", "added with a default", "any text", "any name", "a name of Delta's", "widened"],
)
def test_a_changed_column_has_the_source_s_values(
    spark: SparkSession, path: str, step: Step, expected: dict[str, Any]
) -> None:
    """Timestamps need a table feature in Delta, and text values must not be taken for SQL."""
    do(spark, path, step)

    (row,) = rows(path)
    assert {name: row[name] for name in expected} == expected
    assert position(path) == AFTER


def test_a_first_timestamp_column_can_come_from_the_events(spark: SparkSession, path: str) -> None:
    evolve.add_columns(spark, path, (Column("at", "timestamp_ntz"),), BEFORE.metadata())

    assert rows(path)[0]["at"] is None


def test_both_ways_make_the_same_of_a_table(spark: SparkSession, path: str, way: str) -> None:
    """Column by column and by name, in every version, for Spark and for delta-rs."""
    steps = (
        AddColumn(Column("list", "array<decimal(9,2)>")),
        RenameColumn("day", "Day of `it`"),
        AddColumn(Column("at", "timestamp_ntz")),
        DropColumn("list"),
        AddColumn(Column("day", "string")),
        ChangeKey(("id", "day")),
    )

    for step in steps:
        do(spark, path, step)

    kept = {"id": 1, "Day of `it`": date(2020, 2, 29), "_cdc_offset": 3, "at": None, "day": None}
    assert rows(path) == [kept]
    (seen,) = spark.read.format("delta").load(path).collect()
    assert seen.asDict() == kept
    assert fields(path) == [
        ("id", "integer", 1),
        ("Day of `it`", "date", 2),
        ("_cdc_offset", "long", 3),
        ("at", "timestamp_ntz", 5),
        ("day", "string", 6),
    ]
    assert ["UPGRADE" in done for done in operations(path)].count(True) == (way != "by Spark")
    assert [done for done in operations(path) if "UPGRADE" not in done] == [
        "SET TBLPROPERTIES",
        "ADD COLUMNS",
        "DROP COLUMNS",
        "ADD COLUMNS",
        *(["SET TBLPROPERTIES"] if way == "by Spark" else []),
        "RENAME COLUMN",
        "ADD COLUMNS",
        "WRITE",
        "CREATE TABLE",
    ]
    store.append(path, spark.sql(ANOTHER), AFTER)
    DeltaTable(path).create_checkpoint()
    assert [row["at"] for row in sorted(rows(path), key=itemgetter("id"))] == [None, NOON]


def test_a_name_that_differs_in_case_alone_is_refused(spark: SparkSession, path: str) -> None:
    with pytest.raises(AnalysisException, match="DAY"):
        do(spark, path, AddColumn(Column("DAY", "int")))

    assert position(path) == BEFORE


@pytest.mark.parametrize(
    ("step", "last_commit"),
    [
        (AddColumn(Column("n", "int"), "7"), "filled"),
        (RenameColumn("id", "key"), "keyed_by"),
    ],
    ids=["before the value of older rows", "before the name of the key"],
)
def test_a_step_interrupted_between_its_commits_is_done_again(
    spark: SparkSession,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
    step: Step,
    last_commit: str,
) -> None:
    monkeypatch.setattr(evolve._Table, last_commit, lambda *_: _interrupt)
    with pytest.raises(Interrupted):
        do(spark, path, step)
    monkeypatch.undo()
    assert position(path) == BEFORE

    schema = do(spark, path, step)

    assert position(path) == AFTER
    assert store.read_schema(path, TABLE) == schema
    assert schema.key == (("key",) if isinstance(step, RenameColumn) else ("id",))
    assert rows(path)[0].get("n") == (7 if isinstance(step, AddColumn) else None)


def _interrupt(*_: object, **__: object) -> None:
    raise Interrupted
