"""A table replaces whatever is at another's path; readers find either the old or the new table."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from cdc.apply.difference.likeness import likeness
from cdc.apply.log_replay import do_nothing
from cdc.errors import CdcError
from cdc.events.schema import Column, TableSchema
from cdc.events.values.sql_text import spark_delta
from cdc.lake.alter import evolve
from cdc.lake.table import store
from cdc.lake.table.merge_plan import COPY, OFFSET, ROW_HASH
from cdc.lake.table.positions import KEY_PROPERTY, Position, position
from cdc.lake.table.row_hash import row_hash
from cdc.lake.table.swap import swap
from cdc.tables import TableId, TableMode
from tests.events.structures import column, structure

pytestmark = pytest.mark.spark

TABLE = TableId("shop", "orders")
OLD = TableSchema(
    table=TABLE,
    columns=(Column("id", "int"), Column("gone", "string")),
    key=("id",),
    mode=TableMode.KEYED,
)
NEW = TableSchema(
    table=TABLE,
    columns=(Column("id", "bigint"), Column("at", "timestamp_ntz")),
    key=("id",),
    mode=TableMode.KEYED,
)
STRUCTURE = structure(column(1, "id", "int8", not_null=True), column(2, "at", "timestamp"))
BEFORE, AFTER = Position(epoch=1, offset=3), Position(epoch=1, offset=9, rows_applied=2, note=4)


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    """The test's own session, because the position is set in its configuration."""
    return spark.newSession()


@pytest.fixture
def live(session: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "live")
    store.create(session, path, OLD, BEFORE)
    store.append(path, session.sql(f"SELECT 1 AS id, 'x' AS gone, 3L AS {OFFSET}"), BEFORE)
    return path


@pytest.fixture
def made(session: SparkSession, tmp_path: Path) -> str:
    path = str(tmp_path / "made")
    store.create(session, path, NEW, AFTER, STRUCTURE)
    rows = f"SELECT id, TIMESTAMP_NTZ'2020-01-02 03:04:05' AS at, 9L AS {OFFSET} FROM range(2)"
    store.append(path, session.sql(rows), AFTER)
    return path


def rows(path: str, version: int | None = None) -> list[dict[str, Any]]:
    """Return the rows, read by delta-rs."""
    opened = QueryBuilder().register("t", DeltaTable(path, version=version))
    table = pa.table(opened.execute("SELECT * FROM t ORDER BY id").read_all())
    return list(table.to_pylist())


def untouched(_session: SparkSession, _path: str) -> None:
    pass


def deleted(_session: SparkSession, path: str) -> None:
    shutil.rmtree(path)


def restored(session: SparkSession, path: str) -> None:
    """Restore the table as a foreign session, because this session's commits have a position."""
    session.newSession().sql(f"RESTORE TABLE {spark_delta(path)} TO VERSION AS OF 0").collect()
    with pytest.raises(CdcError, match="was not written by wal2lake"):
        position(path)


def without_files(_session: SparkSession, path: str) -> None:
    for file in Path(path).glob("**/*.parquet"):
        if "_delta_log" not in file.parts:
            file.unlink()


def no_delta_table(_session: SparkSession, path: str) -> None:
    shutil.rmtree(Path(path) / "_delta_log")


def unreadable(_session: SparkSession, path: str) -> None:
    for file in Path(path).glob("_delta_log/*.json"):
        file.write_text("{garbage")


@pytest.mark.parametrize(
    "damage", [untouched, deleted, restored, without_files, no_delta_table, unreadable]
)
def test_the_new_table_replaces_whatever_is_at_the_path(
    session: SparkSession,
    live: str,
    made: str,
    tmp_path: Path,
    damage: Callable[[SparkSession, str], None],
) -> None:
    damage(session, live)
    broken = str(tmp_path / "broken" / "orders")

    note = swap(
        session,
        made,
        live,
        schema=NEW,
        position=AFTER,
        structure=STRUCTURE,
        broken=broken,
        going_on=do_nothing,
    )

    assert rows(live) == rows(made)
    assert position(live) == AFTER
    assert store.read_schema(live, TABLE) == NEW
    assert store.read_structure(live) == STRUCTURE
    assert bool(note) == Path(broken).exists() == (damage is unreadable)
    if damage is untouched:
        newest = DeltaTable(live).version()
        assert rows(live, newest - 1) == [{"id": 1, "gone": "x", OFFSET: 3}]


def test_a_replaced_table_can_be_altered_like_any_other(
    session: SparkSession, live: str, made: str
) -> None:
    """A column can be added later: table features and column mapping are complete."""
    swap(
        session,
        made,
        live,
        schema=NEW,
        position=AFTER,
        structure=None,
        broken="",
        going_on=do_nothing,
    )

    evolve.add_columns(session, live, (Column("more", "string"),), AFTER.metadata())

    configuration = DeltaTable(live).metadata().configuration
    assert configuration[KEY_PROPERTY] == json.dumps(["id"])
    assert store.PROPERTIES.items() <= configuration.items()
    assert [row["more"] for row in rows(live)] == [None, None]


def test_an_unrelated_error_leaves_the_old_table_alone(
    session: SparkSession, live: str, tmp_path: Path
) -> None:
    with pytest.raises(Exception, match="nowhere"):
        swap(
            session,
            str(tmp_path / "nowhere"),
            live,
            schema=NEW,
            position=AFTER,
            structure=None,
            broken=str(tmp_path / "broken"),
            going_on=do_nothing,
        )

    assert rows(live) == [{"id": 1, "gone": "x", OFFSET: 3}]


@pytest.mark.parametrize(
    ("held", "counts"),
    [
        ("(1, 'a', 0.0D), (2, NULL, 1.0D), (3, 'c', 1.0D)", (0, 0, 0)),
        ("(1, 'a', -0.0D), (2, '', 1.0D), (4, 'd', 1.0D), (5, 'e', 1.0D)", (1, 2, 2)),
    ],
    ids=["equal", "different"],
)
def test_rows_are_compared_bit_by_bit(
    session: SparkSession, held: str, counts: tuple[int, int, int]
) -> None:
    schema = TableSchema(
        table=TABLE,
        columns=(Column("id", "int"), Column("t", "string"), Column("d", "double")),
        key=("id",),
        mode=TableMode.KEYED,
    )
    values = "(1, 'a', 0.0D), (2, NULL, 1.0D), (3, 'c', 1.0D)"
    one, other = (
        session.sql(f"SELECT *, {n}L AS {OFFSET} FROM VALUES {text} AS t(id, t, d)")
        for n, text in enumerate((values, held))
    )

    result = likeness(one, other, schema)

    assert (result.rows, result.added, result.changed, result.swept) == (3, *counts)
    assert result.equal == (counts == (0, 0, 0))


def test_copies_of_a_row_count_in_the_comparison(session: SparkSession) -> None:
    schema = TableSchema(
        table=TABLE, columns=(Column("x", "int"),), key=(), mode=TableMode.MULTISET
    )
    one, other = (
        session.sql(
            f"SELECT *, 0L AS {OFFSET}, 1L AS {COPY} FROM VALUES {text} AS t(x)"
        ).selectExpr("*", f"{row_hash(schema)} AS {ROW_HASH}")
        for text in ("(1), (1), (1), (2)", "(1), (2), (2), (3)")
    )

    result = likeness(one, other, schema)

    assert (result.rows, result.added, result.changed, result.swept) == (4, 2, 0, 2)


def test_columns_that_differ_are_named(session: SparkSession) -> None:
    one, other = session.sql("SELECT 1 AS id, 2 AS n"), session.sql("SELECT 1 AS id, 2L AS n")

    assert likeness(one, other, OLD).columns == ("n",)
