"""A table rebuilt from log and readings equals the reference at any cut, or is refused."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc.apply.table.structure_notes import PlacedNote
from cdc.errors import CdcError, ErrorKind
from cdc.events import avro
from cdc.events.envelope import Op
from cdc.events.structure.steps import Note
from cdc.lake.create.table import create
from cdc.lake.records.readings import Reading
from cdc.lake.table import store
from cdc.lake.table.merge_plan import DELETED, OFFSET
from cdc.lake.table.positions import Position, position
from cdc.operations.replay.material import FirstSchema, Hooks
from cdc.operations.replay.rebuild import rebuild_table
from cdc.tables import TableId
from tests.events.recorded import Message
from tests.events.source import LARGE, SCHEMA_ID, TABLE, TOPIC, Source
from tests.events.structures import column, structure
from tests.local_spark import frame_of
from tests.spark.rebuilding import (
    NO_KEY,
    PLACEHOLDER,
    SCHEMAS,
    TOASTY,
    Log,
    by_id,
    changes,
    copies,
    event,
    expected,
    expected_copies,
    held,
    legal_cuts,
)

pytestmark = pytest.mark.spark

BETWEEN = 1_000_000  # the reference's offsets are multiples: a reading's changes lie in between


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    """Return a session of the test's own, since its configuration holds the position."""
    return spark.newSession()


def made(source: Source, session: SparkSession, root: Path) -> Log:
    return Log(spark=session, root=root, messages=source.messages())


def test_a_table_equals_the_reference_at_a_cut(
    session: SparkSession, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """With large values, changed keys and a truncate; the commit has the table's position."""
    source = changes(1, 60)
    log, cuts = made(source, session, tmp_path), legal_cuts(source)
    chosen = cuts if request.config.getoption("--deep") else [cuts[-3]]

    for cut in chosen:
        path = str(tmp_path / f"at-{cut}")
        table = rebuild_table(session, log.material(), TABLE, path, upto=cut, epoch=1)

        assert by_id(session, table) == expected(source.events(), cut), cut
        assert position(path) == table.position
        assert table.position.offset == cut


def test_a_table_without_a_key_equals_the_reference(session: SparkSession, tmp_path: Path) -> None:
    messages = copies(Random(3), 90)
    log = Log(spark=session, root=tmp_path, messages=messages, schema=NO_KEY)

    table = rebuild_table(
        session, log.material(budget=60), NO_KEY.table, str(tmp_path / "t"), upto=70, epoch=1
    )

    rows = held(session, table.path, table.schema)
    assert Counter(tuple(row.items()) for row in rows) == expected_copies(messages, 70)


def row(number: int, value: int) -> dict[str, Any]:
    return {"id": number, "n": value, **{name: make(value) for name, make in LARGE.items()}}


def kept(session: SparkSession, path: str, rows: list[dict[str, Any]], at: Position) -> None:
    """Write a whole reading of the source."""
    create(session, path, TOASTY, at)
    types = ", ".join(f"{c.name} {c.type}" for c in TOASTY.columns)
    values = [tuple(one[name] for name in TOASTY.names) for one in rows]
    frame = frame_of(session, values, types)
    store.append(path, frame.selectExpr("*", f"{at.offset}L AS {OFFSET}"), at)


def changed(
    session: SparkSession, path: str, rows: list[tuple[dict[str, Any], bool]], offset: int
) -> None:
    """Write a difference: rows, and whether each is deleted."""
    types = ", ".join(f"{c.name} {c.type}" for c in TOASTY.columns)
    values = [(*(one[name] for name in TOASTY.names), offset, gone) for one, gone in rows]
    frame = frame_of(session, values, f"{types}, {OFFSET} bigint, {DELETED} boolean")
    frame.write.format("delta").save(path)


def reading(number: int, path: str, at: Position, *, whole: bool, landing: int) -> Reading:
    return Reading(
        number=number,
        table=str(TABLE),
        whole=whole,
        path=path,
        version=1 if whole else 0,
        position=replace(at, reading=number),
        lsn=1,
        cut=1,
        landing=landing,
        operation="o",
        made_at=datetime.now(UTC),
    )


def spread(source: Source) -> list[Any]:
    """Return the events with unused offsets between any two."""
    return [replace(one, offset=one.offset * BETWEEN) for one in source.events()]


def middle(source: Source) -> int:
    """Return a cut in the second half, after the truncate."""
    cuts = legal_cuts(source)
    return cuts[len(cuts) * 3 // 4]


def test_the_changes_of_a_reading_are_merged_at_its_position(
    session: SparkSession, tmp_path: Path
) -> None:
    """The reading added one row, changed one and deleted one, without any event."""
    source = changes(5, 80)
    log, at = made(source, session, tmp_path), middle(source)
    before = expected(source.events(), at)
    # No later event takes unchanged values from the row that is gone.
    later = {e.image["id"] for e in source.events() if e.offset > at and e.image}
    gone = min(before.keys() - later)
    other = min(before.keys() - {gone})
    after = [(row(other, 77), False), (row(gone, 0), True), (row(500, 78), False)]
    changed(session, str(tmp_path / "d"), after, at)
    found = reading(1, str(tmp_path / "d"), Position(epoch=1, offset=at), whole=False, landing=0)
    last = source.log[-1][0]

    table = rebuild_table(
        session,
        log.material(readings=[found], budget=100),
        TABLE,
        str(tmp_path / "t"),
        upto=last,
        epoch=1,
    )

    said = [
        event(at * BETWEEN + number, Op.DELETE if goes else Op.CREATE, one)
        for number, (one, goes) in enumerate(after, start=1)
    ]
    assert by_id(session, table) == expected([*spread(source), *said], last * BETWEEN)
    assert table.position.reading == 1


def test_a_whole_reading_replaces_the_log_before_it(session: SparkSession, tmp_path: Path) -> None:
    source = changes(9, 80)
    log, at = made(source, session, tmp_path), middle(source)
    rows = [*expected(source.events(), at).values(), row(600, 5)]
    kept(session, str(tmp_path / "w"), rows, Position(epoch=1, offset=at))
    landing, last = log.landing_at(at), source.log[-1][0]
    found = reading(
        1, str(tmp_path / "w"), Position(epoch=1, offset=at), whole=True, landing=landing
    )
    material = log.material(after_landing=landing, readings=[found])

    table = rebuild_table(session, material, TABLE, str(tmp_path / "t"), upto=last, epoch=1)

    more = event(at * BETWEEN + 1, Op.CREATE, row(600, 5))
    assert by_id(session, table) == expected([*spread(source), more], last * BETWEEN)
    without = replace(material, readings=[])
    with pytest.raises(CdcError, match="have been removed") as caught:
        rebuild_table(session, without, TABLE, str(tmp_path / "n"), upto=last, epoch=1)
    assert caught.value.kind is ErrorKind.CHAIN_BROKEN


@pytest.mark.parametrize("missing", ["the end", "another epoch", "the columns"])
def test_a_rebuild_without_enough_material_is_refused_with_the_reason(
    session: SparkSession, tmp_path: Path, missing: str
) -> None:
    source = changes(2, 8)
    log, last = made(source, session, tmp_path), source.log[-1][0]
    unknown = FirstSchema(note=None, known=None)
    material = log.material(first=unknown) if missing == "the columns" else log.material()
    upto = last + 1 if missing == "the end" else last
    epoch = 2 if missing == "another epoch" else 1
    said = {
        "the end": f"ends before offset {last + 1}",
        "another epoch": "not read whole in epoch 2",
        "the columns": "no note says which columns",
    }

    with pytest.raises(CdcError, match=said[missing]) as caught:
        rebuild_table(session, material, TABLE, str(tmp_path / "t"), upto=upto, epoch=epoch)

    assert caught.value.kind is ErrorKind.CHAIN_BROKEN
    assert caught.value.remedy


TYPES = {
    "id": "int4",
    "n": "int4",
    "big": "text",
    "bigb": "bytea",
    "bigj": "jsonb",
    "biga": "_text",
    "bigia": "_int4",
    "bigh": "hstore",
}
RENAMED = 900


def test_a_rebuild_repeats_the_changes_of_structure(session: SparkSession, tmp_path: Path) -> None:
    """One column is renamed between two events, another is added after the last one."""
    source = Source(placeholder=PLACEHOLDER)
    for key in range(6):
        source.insert(key, key, key)
    renamed_at = source.offset
    source.update(2, 20, {"big": 3})
    source.update(3, 30, {})
    source.insert(9, 9, None)
    columns = [column(i, name, kind) for i, (name, kind) in enumerate(TYPES.items(), start=1)]
    columns[0]["not_null"] = True
    of = {"schema": TABLE.schema, "table": TABLE.name}
    begins = structure(*columns, **of)
    columns[1] = column(2, "m", "int4")
    renamed = structure(*columns, **of)
    added = structure(*columns, column(9, "more", "int4", missing="7"), **of)
    notes = [
        _note(1, begins, None, baseline=True),
        _note(2, renamed, _lsn(renamed_at)),
        _note(3, added, _lsn(source.offset)),
    ]
    log = Log(
        spark=session,
        root=tmp_path,
        messages=_renamed(source, renamed_at),
        schemas={**SCHEMAS, RENAMED: SCHEMAS[SCHEMA_ID].replace('"n"', '"m"')},
    )
    first = FirstSchema(note=notes[0], known=None)
    material = log.material(first=first, notes=notes, budget=100)

    table = rebuild_table(
        session, material, TABLE, str(tmp_path / "t"), upto=source.log[-1][0], epoch=1
    )

    wanted = {
        key: {("m" if name == "n" else name): value for name, value in one.items()} | {"more": 7}
        for key, one in source.rows.items()
    }
    assert by_id(session, table) == wanted
    assert table.position.note == 3
    assert store.read_structure(table.path) == added


def _lsn(offset: int) -> int:
    """Return an LSN just before the event at the offset."""
    return 1000 + offset * 10 - 5


def _note(number: int, found: Any, lsn: int | None, *, baseline: bool = False) -> PlacedNote:  # noqa: ANN401
    note = Note(structure=found, rewrite=0, converted=False)
    table = TableId(TABLE.schema, TABLE.name)
    return PlacedNote(id=number, oid=found.oid, table=table, lsn=lsn, note=note, baseline=baseline)


def _renamed(source: Source, since: int) -> list[Message]:
    """Return the events with LSNs in their order, and with the renamed column from ``since`` on."""
    messages = []
    for offset, value in source.log:
        value["source"]["lsn"] = 1000 + offset * 10
        number, text = SCHEMA_ID, SCHEMAS[SCHEMA_ID]
        if offset >= since:
            number, text = RENAMED, text.replace('"n"', '"m"')
            value["after"]["m"] = value["after"].pop("n")
        data = avro.encode(text, number, value)
        messages.append(Message(topic=TOPIC, offset=offset, key=None, value=data))
    return messages


def test_a_rebuild_can_be_stopped_between_two_commits(
    session: SparkSession, tmp_path: Path
) -> None:
    source = changes(4, 60)
    log, said = made(source, session, tmp_path), list[int]()

    class Cancelled(Exception):  # noqa: N818 - what happens, not what is wrong
        pass

    def point() -> None:
        if len(said) > 1:
            raise Cancelled

    with pytest.raises(Cancelled):
        rebuild_table(
            session,
            log.material(budget=10),
            TABLE,
            str(tmp_path / "t"),
            upto=source.log[-1][0],
            epoch=1,
            hooks=Hooks(point, said.append),
        )

    assert said == sorted(said)
    found = position(str(tmp_path / "t"))
    assert found is not None
    assert 0 <= found.offset < source.log[-1][0]
