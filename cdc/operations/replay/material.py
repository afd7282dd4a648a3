"""Describe what one table is rebuilt from, and up to which place."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from pyspark.sql import DataFrame

from cdc.apply.log_replay import Recorded, do_nothing
from cdc.apply.table.structure_notes import PlacedNote
from cdc.apply.table.table_factory import TableFactory
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import TableSchema
from cdc.kafka.broker import Broker
from cdc.kafka.offsets import end_offsets
from cdc.lake.records.ledger import LedgerRow
from cdc.lake.records.readings import Reading
from cdc.lake.table.positions import UNREAD
from cdc.operations.replay.topic_copy import FROM_LOG
from cdc.tables import TableId

READ_ANEW: Final = "read the table from the source again: wal2lake resnapshot"
_LOOKS: Final = 50
"""How often to try to read the ends of two topics at the same moment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSchema:
    """Describe the columns that the table's log begins with, as far as they are known."""

    note: PlacedNote | None  # the note of the structure that the table began with, if any
    known: TableSchema | None  # columns and key, for a table without such a note
    as_text: Sequence[str] = ()
    append: bool = False  # whether a table without a key takes inserts only


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """Hold what one table is rebuilt from, up to the wanted offset or further."""

    recorded: Recorded  # the events and the structure changes
    events_from: Literal["log", "kafka"]
    first_landing: int  # number of the first landing that the log still has of any table
    readings: Sequence[Reading]  # of the table, as far as they count, the oldest first
    first: FirstSchema
    tables: TableFactory

    def with_rows(self, rows: DataFrame) -> "Material":
        """Return the material with other rows of the log."""
        return replace(self, recorded=replace(self.recorded, rows=rows))

    def with_notes_to(self, newest: int) -> "Material":
        """Return the material with the structure changes up to the id of a note."""
        notes = [note for note in self.recorded.notes if note.id <= newest]
        return replace(self, recorded=replace(self.recorded, notes=notes))


def tell_nobody(_: int) -> None:
    """Do nothing with the number of events."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """Hold the functions that are called while a table is rebuilt."""

    point: Callable[[], None] = do_nothing
    """Called at safe points, between two commits; may raise."""
    tell: Callable[[int], None] = tell_nobody
    """Called with the number of events applied so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayEnd:
    """Says up to which place a table is rebuilt: a cut, or the end of the topics."""

    epoch: int
    upto: int  # offset in the table's topic
    notes: int  # offset in the topic of structure changes
    cut: int | None = None  # None: the end of the topics
    snapshot_end: int | None = 0  # as the cut's row has it


def end_at_cut(row: LedgerRow, table: TableId) -> ReplayEnd:
    """Return where the table is at a cut.

    Raises CONFIG for a table that the cut does not have, TABLE_STOPPED for one not read yet.
    """
    entry = row.entry(str(table))
    if entry is None:
        raise CdcError(
            ErrorKind.CONFIG,
            f"cut {row.cut} has no table {table}",
            remedy="wal2lake status lists the tables; name an earlier or a later cut",
        )
    if entry.reading == UNREAD:
        raise CdcError(ErrorKind.TABLE_STOPPED, f"{table} has not been read yet", remedy=READ_ANEW)
    return ReplayEnd(
        epoch=row.epoch,
        upto=entry.offset,
        notes=row.notes_offset,
        cut=row.cut,
        # The rows of earlier versions lack it.
        snapshot_end=0 if row.snapshot_end is None else row.snapshot_end,
    )


def end_of_topics(broker: Broker, topic: str, notes_topic: str) -> ReplayEnd:
    """Return the ends of the two topics at the same moment, in the first epoch.

    Raises CONFLICT where the topic grows too fast for that.
    """
    for _ in range(_LOOKS):
        before = end_offsets(broker, [topic, notes_topic])
        after = end_offsets(broker, [topic])
        if before.get(topic) == after.get(topic):
            ends = {name: before.get(name, 0) - 1 for name in (topic, notes_topic)}
            return ReplayEnd(epoch=1, upto=ends[topic], notes=ends[notes_topic])
    raise CdcError(
        ErrorKind.CONFLICT,
        f"topic {topic} grows too fast to find its end",
        remedy=f"name a cut with --to, or {FROM_LOG}",
    )
