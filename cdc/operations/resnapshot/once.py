"""Reads one table once, at one moment, and takes its rows into the lake."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from cdc.apply.table.applied_table import AppliedTable
from cdc.client.moment import Moment, moment
from cdc.operations.desk.context import CUT_SECONDS, JobContext
from cdc.operations.desk.reporter import Reporter
from cdc.operations.resnapshot.commit import ReadingWriter
from cdc.operations.resnapshot.kept_reading import Subject
from cdc.operations.resnapshot.read import Stage, Staged
from cdc.operations.resnapshot.small_commit import SmallWriter
from cdc.operations.resnapshot.small_reading import read_small
from cdc.operations.resnapshot.target import Target, refuse_in_part, target_of
from cdc.source.catalog.catalog import SourceTable
from cdc.state.operation import SHADOW, Operation, TableResult

_ROWS: Final = "SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = %s"


@dataclass(frozen=True, slots=True)
class Once:
    """Reads one table once, while it is marked as being read."""

    context: JobContext
    operation: Operation
    reporter: Reporter
    source: SourceTable
    live: AppliedTable

    def here(self, keys: Sequence[Sequence[str]] | None) -> TableResult:
        """Read a small table in place, without Spark: its rows of these keys, or all of them.

        Raises NotLocalError, before anything is written, where only Spark can do it.
        """
        with self._moment(frozen=True) as at:
            target = self._target(at)
            if keys is not None:
                refuse_in_part(target, self.live)
            reading = read_small(at.connection, self.source.table, target, self._tell, keys)
        writer = SmallWriter(
            self.context,
            self.context.spark,
            self._subject(target, at),
            self.operation,
            self.reporter,
        )
        return writer.in_place(reading)

    def by_spark(self, folder: str, read: Callable[[Stage], Staged]) -> TableResult:
        """Read what ``read`` reads of the table; the rows lie below ``folder`` meanwhile."""
        shadow = self.operation.options.get("mode") == SHADOW
        with self._moment(frozen=not shadow) as at:
            target = self._target(at)
            stage = Stage(
                spark=self.context.spark,
                moment=at,
                target=target,
                table=self.source.table,
                folder=folder,
                reporter=self.reporter,
            )
            staged = read(stage)
        session = self.context.spark.newSession()
        subject = self._subject(target, at)
        writer = ReadingWriter(self.context, session, subject, self.operation, self.reporter)
        return writer.by_shadow(staged) if shadow else writer.in_place(staged)

    def _target(self, at: Moment) -> Target:
        return target_of(self.context.config, self.live, at.structures[self.source.oid])

    def _subject(self, target: Target, at: Moment) -> Subject:
        number = self.context.readings.next_number()
        return Subject(live=self.live, target=target, at=at, number=number)

    def _tell(self, chunks: int, rows: int) -> None:
        self.reporter.tell(chunks=chunks, rows=rows)
        self.reporter.safe_point()

    @contextmanager
    def _moment(self, *, frozen: bool) -> Iterator[Moment]:
        freezer, topic = self.context.freezer, self.context.topic(self.source.table)
        requests: list[str] = []

        def on_request(request: str) -> None:
            requests.append(request)
            if frozen:
                freezer.freeze_at(request, [topic])

        try:
            with moment(
                self.context.pipeline,
                timeout=CUT_SECONDS,
                tables={self.source.oid: self.source.table},
                tell=lambda _: self.reporter.safe_point(),
                on_request=on_request,
                on_look=lambda _: self.reporter.safe_point(),
            ) as at:
                expected = _expected(at, self.source)
                self.reporter.tell(phase="reading", rows_expected=expected)
                yield at
        finally:
            for request in requests:
                freezer.forget(request)


def _expected(at: Moment, source: SourceTable) -> int | None:
    row = at.connection.execute(_ROWS, (source.oid,)).fetchone()
    return int(row[0]) if row and row[0] else None
