"""A first snapshot that was taken twice, or during which a table was rewritten, is detected."""

from pathlib import Path
from typing import Any, Final, cast

import pytest

from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.structure_notes import BoundNote
from cdc.apply.table.table_content import TableContent
from cdc.capture import first_slot
from cdc.config import Config, Job, Lake, Source
from cdc.errors import Reason
from cdc.events.schema import TableSchema
from cdc.events.structure.steps import Note
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table.positions import Position
from cdc.tables import TableMode
from tests.events.structures import column, structure

BEFORE: Final = structure(column(1, "id", "int4", not_null=True), column(2, "n", "int4"))
AFTER: Final = structure(column(1, "id", "int4", not_null=True), column(2, "n", "int8"))
SLOT: Final = 100
END: Final = 200
CONVERTED: Final = 4


def table(tmp_path: Path, *, slot_lsn: int | None = SLOT, **position: Any) -> AppliedTable:  # noqa: ANN401
    columns = tuple(followed.column for followed in BEFORE.followed)
    schema = TableSchema(table=BEFORE.table, columns=columns, key=("id",), mode=TableMode.KEYED)
    at = Position(**{"epoch": 1, "offset": -1, **position})
    context = ApplyContext(
        quarantine=Quarantine(str(tmp_path / "quarantine")),
        placeholder="-",
        policy=Job(),
        slot_lsn=slot_lsn,
    )
    session = cast("Any", None)  # nothing is read or written here
    content = TableContent(schema=schema, position=at, structure=BEFORE)
    return AppliedTable(session, str(tmp_path / "t"), content, context)


@pytest.mark.parametrize(
    ("lsn", "slot_lsn", "stops"),
    [(SLOT, SLOT, False), (SLOT - 1, SLOT, False), (SLOT + 1, SLOT, True), (SLOT + 1, None, False)],
)
def test_rows_with_an_lsn_after_the_slot_s_are_of_another_snapshot(
    tmp_path: Path, lsn: int, slot_lsn: int | None, *, stops: bool
) -> None:
    """It is noticed even if no row of this table came from the first attempt."""
    applied = table(tmp_path, slot_lsn=slot_lsn)

    applied.remember_snapshot(frozenset({lsn}))

    assert applied.stopped is stops
    assert (f"[{Reason.SNAPSHOT_REPEATED.value}] " in applied.reason) is stops


def note(lsn: int | None, rewrite: int = CONVERTED) -> BoundNote:
    return BoundNote(id=7, after=-1, note=Note(structure=AFTER, rewrite=rewrite), lsn=lsn)


@pytest.mark.parametrize(
    ("change", "end", "inside"),
    [
        (note(END), END, True),
        (note(END), None, True),  # the end of the snapshot is not known yet
        (note(END + 1), END, False),
        (note(END, rewrite=0), END, False),
        (note(None), END, False),  # older than the snapshot
        (BoundNote(id=7, after=-1, note=None, lsn=END), END, False),
    ],
)
def test_a_rewrite_before_the_end_of_the_first_snapshot_is_suspect(
    change: BoundNote, end: int | None, *, inside: bool
) -> None:
    assert change.rewrites_before(end) is inside


def test_the_slot_s_beginning_is_forgotten_with_its_connector(tmp_path: Path) -> None:
    source, lake = Source(tables=["a.*"]), Lake(path=str(tmp_path / "lake"))
    config = Config(source=source, lake=lake, state_dir=tmp_path)
    assert first_slot.first_lsn(config) is None

    (tmp_path / "first_slot.json").write_text('{"lsn": 17}')
    assert first_slot.first_lsn(config) == 17

    first_slot.forget(config)
    assert first_slot.first_lsn(config) is None
