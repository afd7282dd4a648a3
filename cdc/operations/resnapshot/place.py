"""Says where a table is, among the events of its topic, once it holds a reading."""

from collections.abc import Iterable

from cdc.apply.table.structure_notes import PlacedNote
from cdc.errors import CdcError, ErrorKind
from cdc.lake.records import epochs
from cdc.lake.table.positions import Position
from cdc.operations.desk.context import JobContext
from cdc.operations.resnapshot.kept_reading import Subject
from cdc.operations.resnapshot.target import newest_note


def position_at(
    context: JobContext, subject: Subject, notes: Iterable[PlacedNote], refused: int
) -> Position:
    """Return the position at the cut of the reading, with the events applied so far.

    ``notes`` are the structure changes inside the cut, ``refused`` the table's open events.
    """
    entry = subject.at.cut.entry(str(subject.live.schema.table))
    if entry is None:
        raise CdcError(ErrorKind.INTERNAL, "the cut of the reading lacks the table")
    before, epoch = subject.live.position, epochs.number(context.log.epoch)
    # A restored source hands out ids of notes again, so ids of another epoch do not compare.
    least = before.note if before.epoch == epoch else 0
    return Position(
        epoch=epoch,
        offset=entry.offset,
        rows_applied=before.rows_applied,
        refused=refused,
        note=newest_note(notes, subject.target.structure, least),
        reading=subject.number,
    )
