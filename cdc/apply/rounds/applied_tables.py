"""Brings every table to a cut, several at a time."""

import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import structlog

from cdc.apply.rounds.last_cut import LastCut
from cdc.apply.rounds.log_slice import Slice
from cdc.apply.rounds.whole_transactions import Cut
from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.event_applier import Stretch
from cdc.apply.table.structure_notes import PlacedNote, notes_of, placed_notes
from cdc.lake.records.ledger import TableEntry

logger = structlog.get_logger(__name__)


class AppliedTables:
    """Holds the tables by topic, and brings them to cuts; only rounds change them.

    Any thread may read ``by_topic`` and ``merging``; the rest is for the thread of the rounds.
    """

    def __init__(
        self, by_topic: Mapping[str, AppliedTable], *, notes_topic: str, threads: int
    ) -> None:
        self.by_topic = by_topic
        self._notes_topic = notes_topic
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="apply")
        self._noted: set[str] = set()
        self._merging: set[str] = set()

    @property
    def merging(self) -> tuple[str, ...]:
        """Return the names of the tables that are being brought to the next cut."""
        return tuple(self._merging)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(cancel_futures=True)

    def take_noted(self) -> list[str]:
        """Return the topics of stopped tables whose structure got a note since the last call."""
        topics = sorted(self._noted)
        self._noted.clear()
        return topics

    def has(self, topic: str, offset: int) -> bool:
        """Return whether a table that follows has the event at an offset of its topic."""
        table = self.by_topic.get(topic)
        return table is not None and table.following and table.position.offset >= offset

    def places(self) -> tuple[tuple[bool, int], ...]:
        """Return whether each table follows, and how far it is, to see whether that has changed."""
        return tuple((t.following, t.position.offset) for t in self.by_topic.values())

    def is_beyond(self, cut: Cut, last: LastCut) -> bool:
        """Return whether any table that follows is beyond the cut already."""
        return any(
            table.following
            and table.position.offset > max(cut.offsets.get(topic, -1), last.offsets.get(topic, -1))
            for topic, table in self.by_topic.items()
        )

    def entries(
        self, offsets: Mapping[str, int], *, streaming: bool, whole: bool
    ) -> tuple[TableEntry, ...]:
        """Return each table's entry in the ledger's row for a cut that ends at ``offsets``.

        ``streaming``: the cut has a transaction. ``whole``: it lies behind the end of the first
        snapshot, so that even a table that the snapshot found empty equals the source.
        """
        return tuple(
            table.entry(offsets[topic], streaming=streaming and (whole or table.content.was_read))
            for topic, table in sorted(self.by_topic.items())
        )

    def bring(
        self,
        part: Slice,
        cut: Cut,
        last: LastCut,
        schemas: Mapping[int, str],
        ids: Mapping[str, frozenset[int]],
    ) -> None:
        """Bring every table that follows to the cut, and return when the last one is there.

        ``ids`` has the ids of each topic's writer schemas. A table that cannot go on stops; any
        error that does not concern one table alone is raised.
        """
        started = time.monotonic()
        self._read_at(part, cut)
        notes = self._notes(part, cut, last, schemas)
        self._remember_noted(notes)
        futures = [
            self._pool.submit(
                self._bring,
                table,
                replace(
                    _stretch(topic, part, cut, last),
                    schemas={i: schemas[i] for i in ids.get(topic, ()) if i in schemas},
                ),
                notes,
            )
            for topic, table in self._behind(cut, notes)
        ]
        for future in futures:
            future.result()
        logger.info("applied", tables=len(futures), seconds=round(time.monotonic() - started, 2))

    def _read_at(self, part: Slice, cut: Cut) -> None:
        for topic, lsns in part.snapshots.items():
            table = self.by_topic.get(topic)  # None for the notes, which the snapshot reads too
            if table is not None and table.following and table.position.offset < cut.offsets[topic]:
                table.remember_snapshot(lsns)

    def _notes(
        self, part: Slice, cut: Cut, last: LastCut, schemas: Mapping[int, str]
    ) -> list[PlacedNote]:
        """Return the structure changes inside the cut; read the log only where there are some."""
        upto, after = cut.offsets[self._notes_topic], last.offsets[self._notes_topic]
        if upto <= after:
            return []
        mine = part.rows.of_topic(self._notes_topic).between(after, upto)
        if mine.events is not None:
            return notes_of(mine.events.select(["value", "value_schema_id"]).to_pylist(), schemas)
        return placed_notes(mine.frame(), schemas)

    def _remember_noted(self, notes: Sequence[PlacedNote]) -> None:
        self._noted |= {
            topic
            for topic, table in self.by_topic.items()
            if table.stopped and not table.frozen and table.pending_notes(notes)
        }

    def _behind(self, cut: Cut, notes: Sequence[PlacedNote]) -> Iterator[tuple[str, AppliedTable]]:
        """Yield the tables that follow and have an event or a note inside the cut to come."""
        for topic, table in self.by_topic.items():
            if table.following and (
                cut.offsets[topic] > table.position.offset or table.pending_notes(notes)
            ):
                yield topic, table

    def _bring(self, table: AppliedTable, stretch: Stretch, notes: Sequence[PlacedNote]) -> None:
        """Bring one table to the cut, in a thread of the pool."""
        name = str(table.schema.table)
        self._merging.add(name)
        try:
            own = table.bind_notes(notes, stretch.mine, stretch.schemas)
            table.apply(replace(stretch, notes=own))
        finally:
            self._merging.discard(name)


def _stretch(topic: str, part: Slice, cut: Cut, last: LastCut) -> Stretch:
    """Return the topic's events up to the cut; without their schemas and the notes."""
    upto = cut.offsets[topic]
    return Stretch(
        rows=part.rows.of_topic(topic).between(-1, upto),
        topic=topic,
        upto=upto,
        schemas={},
        beyond=part.last[topic] > upto,
        snapshot_end=last.row.snapshot_end,
    )
