"""Structure steps with several commits: new column types, and interruptions between commits."""

from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from cdc.events.schema import Column, TableSchema
from cdc.events.structure.steps import AddColumn, RenameColumn, Step, WidenColumn
from cdc.lake.table import evolve, store
from cdc.lake.table.positions import Position, position
from cdc.tables import TableId, TableMode

pytestmark = pytest.mark.spark

TABLE = TableId("public", "t")
BEFORE = Position(epoch=1, offset=3)
TEXT = 'Dear ${env:HOME} ${name}, it\'s `a` \\ "b"\n%'
AFTER = Position(epoch=1, offset=3, steps=1)


class Interrupted(Exception):  # noqa: N818 - an event, not an error
    """Simulates the end of the process."""


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
    store.add_columns(spark, path, (Column("at", "timestamp_ntz"),), BEFORE)

    assert rows(path)[0]["at"] is None


@pytest.mark.parametrize(
    ("step", "last_commit"),
    [
        (AddColumn(Column("n", "int"), "7"), "set_everywhere"),
        (RenameColumn("id", "key"), "set_properties"),
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
    monkeypatch.setattr(store, last_commit, _interrupt)
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
