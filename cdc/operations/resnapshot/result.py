"""Says what a reading does beside its rows: refused and settled events, position, result.

Rows are taken into the lake by ``commit.py`` on Spark, and by ``small_commit.py`` in this process.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cdc.failpoints import Failpoint, reach
from cdc.lake.records.quarantine import EventState, RefusedEvent
from cdc.lake.table.positions import Position
from cdc.operations.desk.context import JobContext
from cdc.operations.desk.reporter import Reporter
from cdc.operations.resnapshot.kept_reading import Subject
from cdc.operations.resnapshot.place import position_at
from cdc.state.operation import AnnouncedCommit, Operation, TableResult


@dataclass(frozen=True, slots=True)
class ReadingResult:
    """Records the result of one reading of one table."""

    context: JobContext
    subject: Subject
    operation: Operation
    reporter: Reporter

    @property
    def topic(self) -> str:
        """Return the table's topic."""
        return self.context.topic(self.subject.live.schema.table)

    def position(self, refused: int) -> Position:
        """Return the position of the table with the reading; ``refused`` events are open then."""
        notes = self.context.log.newest().notes(self.subject.at.cut.notes_offset)
        return position_at(self.context, self.subject, notes, refused)

    def refuse(self, refused: Sequence[RefusedEvent]) -> tuple[list[RefusedEvent], int]:
        """Put rows that the lake cannot hold into quarantine.

        Returns the open events that the reading settles, and how many are open afterwards.
        """
        table = str(self.subject.live.schema.table)
        events = self.context.quarantine.rows(table, only_open=True, with_values=False)
        settled = [event for event in events if self._is_settled(event)]
        self.context.quarantine.add(refused)
        return settled, len(events) + len(refused) - len(settled)

    @contextmanager
    def committing(
        self,
        rows_read: int,
        position: Position,
        settled: list[RefusedEvent],
        counts: Mapping[str, Any],
    ) -> Iterator[TableResult]:
        """Note the result before the block, which makes the commit; settle the events after it."""
        result = TableResult(
            table=str(self.subject.live.schema.table),
            rows_read=rows_read,
            refused=position.refused,
            cut_before=self.subject.at.cut.cut,
            **counts,
        )
        settles = tuple(event.offset for event in settled)
        self.reporter.refuse_ended()
        reach(Failpoint.BEFORE_COMMIT_NOTE)
        self.reporter.write_fields(
            commit=AnnouncedCommit(reading=self.subject.number, result=result, settles=settles)
        )
        reach(Failpoint.AFTER_COMMIT_NOTE)
        yield result
        settle(self.context, self.operation, settled)

    @contextmanager
    def merging(self) -> Iterator[None]:
        """Surround the one commit that merges a difference."""
        reach(Failpoint.BEFORE_DIFFERENCE_MERGE)
        yield
        reach(Failpoint.AFTER_DIFFERENCE_MERGE)

    @contextmanager
    def swapping(self) -> Iterator[None]:
        """Surround the one commit that replaces the table."""
        reach(Failpoint.BEFORE_READING_SWAP)
        yield
        reach(Failpoint.AFTER_READING_SWAP)

    def _is_settled(self, event: RefusedEvent) -> bool:
        """Return whether the event's row was read again now, at a later place.

        A reading with a predicate settles no event, since it may leave the row out.
        """
        options, entry = self.operation.options, self.subject.at.cut.entry(event.table)
        if options.get("where") or entry is None or event.offset > entry.offset:
            return False
        chosen = json.loads(options.get("offsets", "null"))
        return not chosen or event.offset in chosen


def settle(context: JobContext, operation: Operation, events: list[RefusedEvent]) -> None:
    """Settle the events: the operation has read their rows again."""
    context.quarantine.settle(
        events,
        state=EventState.RETRIED,
        by=operation.asked_by,
        note=f"read again by operation {operation.id}",
        at=datetime.now(UTC),
    )
