"""Takes the rows of a reading into the lake's table, and keeps them beside the log.

The process may die after every durable step: refused rows, the reading, its line in the index, the
note of the result, then the one commit of the table. An operation that is run again begins with a
reading of its own, unless that commit was made.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.difference import row_difference
from cdc.apply.difference.merge import merge_difference
from cdc.apply.log_replay import replay
from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.follower import shape_of
from cdc.apply.table.structure_change import Shape
from cdc.client.moment import Moment
from cdc.errors import CdcError, ErrorKind
from cdc.failpoints import Failpoint, reach
from cdc.lake.layout import broken_path, reading_path
from cdc.lake.records import epochs
from cdc.lake.records.quarantine import EventState, RefusedEvent
from cdc.lake.records.readings import Reading
from cdc.lake.table import store
from cdc.lake.table.positions import Position, open_table
from cdc.lake.table.removal import remove
from cdc.lake.table.swap import is_readable, swap
from cdc.operations.desk.context import JobContext
from cdc.operations.desk.reporter import Reporter
from cdc.operations.resnapshot.read import Staged, count_by_kind, refused_events
from cdc.operations.resnapshot.target import Target, newest_note
from cdc.state.operation import Commit, Operation, TableResult
from cdc.tables import TableMode

_ROUNDS: Final = 5
"""How often a shadow catches up while its table goes on, before the table is frozen for it."""
_NEAR: Final = 1000
"""How many offsets behind its table a shadow may be when the table is frozen."""


@dataclass(frozen=True, slots=True)
class ReadingWriter:
    """Takes one reading of one table into the lake; no other thread may use ``session``."""

    context: JobContext
    session: SparkSession
    live: AppliedTable
    target: Target
    at: Moment
    operation: Operation
    reporter: Reporter
    number: int  # of the reading

    def in_place(self, staged: Staged) -> TableResult:
        """Merge the rows into the frozen table, and return the result.

        A table that was stopped, or that has other columns, is not what a replay of its log gives:
        for it the whole reading is kept, for any other table only the difference. A table that is
        gone or cannot be read is replaced.
        """
        settled, refused = self._refusals(staged)
        position = self._position(refused)
        self.reporter.tell(phase="comparing")
        merges = self.target.same and self.target.schema.mode is not TableMode.APPEND
        if merges and is_readable(self.session, self.live.path):
            return self._merged(staged, position, settled, whole=self.live.stopped)
        return self._replaced(staged, position, settled)

    def by_shadow(self, staged: Staged) -> TableResult:
        """Replace the table by a shadow, which catches up while the table goes on."""
        settled, refused = self._refusals(staged)
        position = self._position(refused)
        position = replace(position, rows_applied=position.rows_applied + staged.rows_read)
        path = self._write_whole(staged, position)
        shadow = self.live.beside(self.session, path, self._shape(position))
        self._catch_up(shadow)
        counts = self._unlike(shadow)
        shape = shape_of(shadow.content) or self._shape(shadow.position)
        with self._committing(staged, shape.position, settled, counts) as result:
            self._swap(shape)
        return result

    @property
    def _topic(self) -> str:
        return self.context.topic(self.live.schema.table)

    @contextmanager
    def _committing(
        self,
        staged: Staged,
        position: Position,
        settled: list[RefusedEvent],
        counts: Mapping[str, Any],
    ) -> Iterator[TableResult]:
        """Note the result before the block, which makes the commit; settle the events after it."""
        result = TableResult(
            table=str(self.live.schema.table),
            rows_read=staged.rows_read,
            refused=position.refused,
            cut_before=self.at.cut.cut,
            **counts,
        )
        settles = tuple(event.offset for event in settled)
        self.reporter.refuse_ended()
        reach(Failpoint.BEFORE_COMMIT_NOTE)
        self.reporter.put(commit=Commit(reading=self.number, result=result, settles=settles))
        reach(Failpoint.AFTER_COMMIT_NOTE)
        yield result
        settle(self.context, self.operation, settled)

    def _merged(
        self, staged: Staged, position: Position, settled: list[RefusedEvent], *, whole: bool
    ) -> TableResult:
        schema, path = self.target.schema, self._path("difference" if whole else "")
        held = self._held() if staged.part is None else staged.part
        reach(Failpoint.BEFORE_DIFFERENCE_WRITE)
        _write(row_difference.unlike(staged.rows, held, schema, position.offset), path)
        reach(Failpoint.AFTER_DIFFERENCE_WRITE)
        counts = count_by_kind(self.session, path)
        more = staged.rows_read if whole else sum(counts.values())
        position = replace(position, rows_applied=position.rows_applied + more)
        if whole:
            self._write_whole(staged, position)
        else:
            self._keep(position, path, whole=False)
        rows = self.session.read.format("delta").load(path).drop(row_difference.KIND)
        with self._committing(staged, position, settled, counts) as result:
            reach(Failpoint.BEFORE_DIFFERENCE_MERGE)
            merge_difference(self.session, self.live.path, schema, rows, position)
            reach(Failpoint.AFTER_DIFFERENCE_MERGE)
            self.live.become(schema, self.target.structure, position)
        if whole:
            remove(self.session, path)
        return result

    def _replaced(
        self, staged: Staged, position: Position, settled: list[RefusedEvent]
    ) -> TableResult:
        readable = is_readable(self.session, self.live.path)
        before = f"with {self._held().count():,} rows" if readable else "gone or not readable"
        position = replace(position, rows_applied=position.rows_applied + staged.rows_read)
        self._write_whole(staged, position)
        note = {"note": f"replaced whole, {before} before"}
        with self._committing(staged, position, settled, note) as result:
            self._swap(self._shape(position))
        return result

    def _swap(self, shape: Shape) -> None:
        reach(Failpoint.BEFORE_READING_SWAP)
        swap(
            self.session,
            self._place(),
            self.live.path,
            schema=shape.schema,
            position=shape.position,
            structure=shape.structure,
            broken=broken_path(self.context.config, self.operation.id, self.live.schema.table),
            going_on=self.reporter.refuse_ended,
        )
        reach(Failpoint.AFTER_READING_SWAP)
        self.live.become(shape.schema, shape.structure, shape.position)

    def _held(self) -> DataFrame:
        return self.session.read.format("delta").load(self.live.path)

    def _shape(self, position: Position) -> Shape:
        return Shape(schema=self.target.schema, structure=self.target.structure, position=position)

    def _write_whole(self, staged: Staged, position: Position) -> str:
        """Write the reading as a table of its own, kept for a rebuild from the log."""
        schema, path = self.target.schema, self._path()
        reach(Failpoint.BEFORE_READING_WRITE)
        store.create(self.session, path, schema, position, self.target.structure)
        store.append(
            path, row_difference.whole_rows(staged.rows, schema, position.offset), position
        )
        reach(Failpoint.AFTER_READING_WRITE)
        self._keep(position, path, whole=True)
        return path

    def _keep(self, position: Position, path: str, *, whole: bool) -> None:
        opened = open_table(path)
        reach(Failpoint.BEFORE_READING_RECORD)
        self.context.readings.add(
            Reading(
                number=self.number,
                table=str(self.live.schema.table),
                whole=whole,
                path=path,
                version=opened.version() if opened else 0,
                position=position,
                lsn=self.at.lsn,
                cut=self.at.cut.cut,
                landing=self.at.cut.landing_floor,
                operation=self.operation.id,
                made_at=datetime.now(UTC),
            )
        )
        reach(Failpoint.AFTER_READING_RECORD)

    def _place(self, suffix: str = "") -> str:
        path = reading_path(self.context.config, self.live.schema.table, self.number)
        return f"{path}.{suffix}" if suffix else path

    def _path(self, suffix: str = "") -> str:
        """Return a path at which nothing is: an interrupted run may have left something there."""
        remove(self.session, self._place(suffix))
        return self._place(suffix)

    def _position(self, refused: int) -> Position:
        entry = self.at.cut.entry(str(self.live.schema.table))
        if entry is None:
            raise CdcError(ErrorKind.INTERNAL, "the cut of the reading lacks the table")
        notes = self.context.notes(self.at.cut.notes_offset)
        epoch = epochs.number(self.context.epoch)
        # A restored source hands out ids of notes again, so ids of another epoch do not compare.
        least = self.live.position.note if self.live.position.epoch == epoch else 0
        return Position(
            epoch=epoch,
            offset=entry.offset,
            rows_applied=self.live.position.rows_applied,
            refused=refused,
            note=newest_note(notes, self.target.structure, least),
            reading=self.number,
        )

    def _refusals(self, staged: Staged) -> tuple[list[RefusedEvent], int]:
        """Put rows that the lake cannot hold into quarantine.

        Returns the open events that the reading settles, and how many are open afterwards.
        """
        table = str(self.live.schema.table)
        events = self.context.quarantine.rows(table, only_open=True, with_values=False)
        settled = [event for event in events if self._is_settled(event)]
        refused = refused_events(staged, self.target, self._topic, self.number)
        self.context.quarantine.add(refused)
        return settled, len(events) + len(refused) - len(settled)

    def _is_settled(self, event: RefusedEvent) -> bool:
        """Return whether the event's row was read again now, at a later place.

        A reading with a predicate settles no event, since it may leave the row out.
        """
        options, entry = self.operation.options, self.at.cut.entry(event.table)
        if options.get("where") or entry is None or event.offset > entry.offset:
            return False
        chosen = json.loads(options.get("offsets", "null"))
        return not chosen or event.offset in chosen

    def _catch_up(self, shadow: AppliedTable) -> None:
        self.reporter.tell(phase="catching up")
        for _ in range(_ROUNDS):
            self._replay(shadow)
            if self.context.last_cut().offsets[self._topic] - shadow.position.offset <= _NEAR:
                break
        self.context.freeze(self.live.schema.table, self.reporter)
        self._replay(shadow)

    def _replay(self, shadow: AppliedTable) -> None:
        """Bring the shadow to the last cut."""
        self.reporter.safe_point()
        topic, last = self._topic, self.context.last_cut()
        offsets = last.offsets
        notes = self.context.notes(offsets[self.context.notes_topic])
        own = (F.col("topic") == topic) & (F.col("offset") <= offsets[topic])
        rows = self.context.log().where(own)
        replay(
            rows,
            topic,
            shadow,
            notes,
            schemas_of=self.context.schemas_of,
            budget=self.context.config.job.max_events_per_batch,
            snapshot_end=last.row.snapshot_end,
        )
        if shadow.stopped:
            raise CdcError(
                ErrorKind.TABLE_STOPPED,
                f"the shadow of {shadow.schema.table} cannot follow the log",
                detail=shadow.reason,
                remedy=f"resnapshot it in place: wal2lake resnapshot {shadow.schema.table}",
            )
        if shadow.position.offset < offsets[topic]:
            shadow.move(replace(shadow.position, offset=offsets[topic]))

    def _unlike(self, shadow: AppliedTable) -> dict[str, int]:
        self.reporter.tell(phase="comparing")
        if self.live.stopped or self.live.schema != shadow.schema:
            return {}
        rows_read = self.session.read.format("delta").load(shadow.path)
        rows = row_difference.unlike(rows_read, self._held(), shadow.schema, 0)
        return {row[0]: row[1] for row in rows.groupBy(row_difference.KIND).count().collect()}


def settle(context: JobContext, operation: Operation, events: list[RefusedEvent]) -> None:
    """Settle the events: the operation has read their rows again."""
    context.quarantine.settle(
        events,
        state=EventState.RETRIED,
        by=operation.asked_by,
        note=f"read again by operation {operation.id}",
        at=datetime.now(UTC),
    )


def _write(rows: DataFrame, path: str) -> None:
    writer = rows.write.format("delta").option("delta.columnMapping.mode", "name")
    writer.mode("errorifexists").save(path)
