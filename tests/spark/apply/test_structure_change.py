"""A change of several steps, interrupted after any of them, ends in the same table."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc.apply.table.structure_change import Shape, course_of, take_steps
from cdc.apply.table.structure_notes import BoundNote
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import TableSchema
from cdc.events.structure.steps import Note, Step
from cdc.events.structure.structure import Structure
from cdc.lake.alter import evolve
from cdc.lake.create.table import create
from cdc.lake.table import store
from cdc.lake.table.merge_plan import COPY, OFFSET, ROW_HASH
from cdc.lake.table.positions import METADATA_CONF, Position, position
from cdc.lake.table.row_hash import row_hash
from cdc.tables import TableMode
from tests.events.structures import column, numeric, structure
from tests.spark.recorded_pipeline import read_rows

pytestmark = pytest.mark.spark

ID = column(1, "id", "int4", not_null=True)
BEFORE = structure(ID, column(2, "a", "text"), column(3, "b", "text"), column(4, "c", "int4"))
AFTER = structure(  # a and b swapped, c widened, d added with a value for older rows
    ID,
    column(2, "b", "text"),
    column(3, "a", "text"),
    column(4, "c", "int8"),
    column(5, "d", missing="1.50", **numeric(8, 2)),
)
STEPS = 5
NOTE = BoundNote(id=7, after=-1, note=Note(structure=AFTER))


class Interrupted(Exception):  # noqa: N818 - what happens, not what is wrong
    """Simulates the end of the process."""


def create_table(spark: SparkSession, path: str, begins: Structure, mode: TableMode) -> None:
    """Create a table of two rows."""
    key = ("id",) if mode is TableMode.KEYED else ()
    columns = tuple(one.column for one in begins.followed)
    schema = TableSchema(table=begins.table, columns=columns, key=key, mode=mode)
    create(spark, path, schema, Position(epoch=1, offset=3), begins)
    rows = "(1, 'a1', 'b1', 1), (2, 'a2', NULL, NULL)"
    frame = spark.sql(f"SELECT * FROM VALUES {rows} AS t(id, a, b, c)").selectExpr("*", "3L AS x")
    frame = frame.withColumnRenamed("x", OFFSET)
    if mode is TableMode.MULTISET:
        frame = frame.selectExpr("*", f"{row_hash(schema)} AS {ROW_HASH}", f"1L AS {COPY}")
    store.append(path, frame, Position(epoch=1, offset=3))


def shape(path: str, begins: Structure) -> Shape:
    """Return the table's shape as a starting job reads it."""
    schema, stored = store.read_schema(path, begins.table), store.read_structure(path)
    reached = position(path)
    assert schema is not None
    assert stored is not None
    assert reached is not None
    return Shape(schema=schema, structure=stored, position=reached)


def run(spark: SparkSession, path: str, note: BoundNote = NOTE) -> Shape:
    before = shape(path, BEFORE)
    course, number = course_of(before, [note], "evolve")
    assert number == 1
    return take_steps(spark, path, before, course, note.id)


def values(path: str) -> list[dict[str, Any]]:
    """Return the rows without our own columns, by delta-rs."""
    own = {OFFSET, ROW_HASH, COPY}
    rows = read_rows(path, "SELECT * FROM t ORDER BY id")
    return [{name: row[name] for name in row if name not in own} for row in rows]


EXPECTED = [
    {"id": 1, "b": "a1", "a": "b1", "c": 1, "d": "1.50"},
    {"id": 2, "b": "a2", "a": None, "c": None, "d": "1.50"},
]


@pytest.mark.parametrize("dies_after", range(STEPS + 1))
def test_a_change_interrupted_after_any_step_is_completed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dies_after: int
) -> None:
    path = str(tmp_path / "t")
    create_table(spark, path, BEFORE, TableMode.KEYED)
    real, left = evolve.take_step, [dies_after]

    def done(session: SparkSession, at: str, old: TableSchema, step: Step, to: str) -> TableSchema:
        if not left[0]:
            raise Interrupted
        left[0] -= 1
        return real(session, at, old, step, to)

    monkeypatch.setattr(evolve, "take_step", done)
    with pytest.raises(Interrupted) if dies_after < STEPS else nullcontext():
        run(spark, path)
    monkeypatch.undo()
    after = run(spark, path) if dies_after < STEPS else shape(path, BEFORE)

    text = [{**row, "d": str(row["d"])} for row in values(path)]
    assert text == EXPECTED
    assert shape(path, BEFORE) == after
    assert after.position == Position(epoch=1, offset=3, note=7)
    assert after.schema.key == ("id",)
    kinds = {one.name: one.type for one in after.schema.columns}
    assert kinds == {
        "id": "int",
        "b": "string",
        "a": "string",
        "c": "bigint",
        "d": "decimal(8,2)",
    }


def test_rows_of_a_table_without_a_key_get_hashes_of_the_new_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Rows that differed only in a dropped column are copies of one another afterwards."""
    path = str(tmp_path / "t")
    bag = structure(
        *(column(n, name, "int4" if name in {"id", "c"} else "text") for n, name in _NAMES),
        identity="f",
        primary_key=[],
    )
    create_table(spark, path, bag, TableMode.MULTISET)
    kept = structure(column(4, "c", "int4"), identity="f", primary_key=[])
    spark.conf.set(METADATA_CONF, Position(epoch=1, offset=3).metadata())
    store.set_everywhere(spark, path, {"c": "5"})

    found = run(spark, path, BoundNote(id=9, after=-1, note=Note(structure=kept)))

    rows = spark.read.format("delta").load(path).collect()
    assert sorted(row[COPY] for row in rows) == [1, 2]
    assert len({row[ROW_HASH] for row in rows}) == 1
    assert found.schema.names == ("c",)
    expected = spark.sql("SELECT 5 AS c").selectExpr(row_hash(found.schema)).collect()[0][0]
    assert rows[0][ROW_HASH] == expected


def test_a_change_that_cannot_be_followed_changes_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = str(tmp_path / "t")
    create_table(spark, path, BEFORE, TableMode.KEYED)
    before = shape(path, BEFORE)
    other = structure(ID, column(2, "a", "text"), column(5, "b", "int4"), table="elsewhere")

    with pytest.raises(CdcError) as caught:
        run(spark, path, BoundNote(id=9, after=-1, note=Note(structure=other)))

    assert caught.value.kind is ErrorKind.TABLE_STOPPED
    # The name is that of the note: the table may have been renamed back since.
    assert "it was renamed to shop.elsewhere" in caught.value.message
    assert shape(path, BEFORE) == before


NO_KEY = replace(BEFORE, primary_key=())


@pytest.mark.parametrize(("offsets", "followed_notes"), [((3, 3), 2), ((3, 4), None)])
def test_a_dropped_key_that_is_restored_is_ignored_unless_events_lie_between(
    offsets: tuple[int, int], followed_notes: int | None
) -> None:
    found = Shape(
        schema=TableSchema(
            table=BEFORE.table,
            columns=tuple(one.column for one in BEFORE.followed),
            key=("id",),
            mode=TableMode.KEYED,
        ),
        structure=BEFORE,
        position=Position(epoch=1, offset=3),
    )
    notes = [
        BoundNote(id=number, after=after, note=Note(structure=noted))
        for number, (after, noted) in enumerate(zip(offsets, (NO_KEY, BEFORE), strict=True))
    ]

    course, number = course_of(found, notes, "evolve")

    assert number == (followed_notes or 1)
    assert bool(course.stops) == (followed_notes is None)


_NAMES = ((1, "id"), (2, "a"), (3, "b"), (4, "c"))
