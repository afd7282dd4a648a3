"""Makes one attempt at the first snapshot: reads several tables at one moment of the source."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

from pyspark.sql import SparkSession

from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.structure_notes import PlacedNote
from cdc.client.moment import Moment, enter_snapshot
from cdc.config import masks_of
from cdc.errors import CdcError
from cdc.operations.desk.context import JobContext
from cdc.operations.desk.reporter import Reporter
from cdc.operations.first_snapshot.copying import Copying, Given
from cdc.operations.first_snapshot.page_range import Extent, extent
from cdc.operations.first_snapshot.progress import ReadProgress
from cdc.operations.first_snapshot.reader import Sessions, reading
from cdc.operations.first_snapshot.settling import settle_earlier
from cdc.operations.first_snapshot.taking import committer_of
from cdc.operations.resnapshot.commit import ReadingWriter
from cdc.operations.resnapshot.kept_reading import Subject
from cdc.operations.resnapshot.read import Stage
from cdc.operations.resnapshot.target import target_of
from cdc.source.catalog.catalog import SourceTable
from cdc.source.server.connection import connect, translated
from cdc.state.operation import Operation, TableResult

Pair = tuple[SourceTable, AppliedTable]
Stop = Callable[[AppliedTable, CdcError], None]
"""Called with a table that cannot be read; raises the error if it is not the table's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """Reads tables at the moment ``at``, below ``folder`` what Spark reads."""

    context: JobContext
    operation: Operation
    reporter: Reporter
    at: Moment
    notes: Sequence[PlacedNote]  # structure changes inside the cut
    session: SparkSession
    folder: str

    def read(self, pairs: Sequence[Pair], first_number: int, stop: Stop) -> None:
        """Read the tables, first those that can be copied; the readings are numbered on.

        Raises what ends the moment or the operation.
        """
        numbers = count(first_number)
        subjects = [self._subject(source, live, next(numbers)) for source, live in pairs]
        sizes = [extent(self.at.connection, source.oid) for source, _ in pairs]
        given = list(filter(None, map(_given, subjects, sizes)))
        self._copy(given, stop)
        copied = {each.subject.number for each in given}
        for subject in subjects:
            if subject.number not in copied:
                self._each(subject, partial(self._by_spark, subject), stop)

    def _subject(self, source: SourceTable, live: AppliedTable, number: int) -> Subject:
        target = target_of(self.context.config, live, self.at.structures[source.oid])
        return Subject(live=live, target=target, at=self.at, number=number)

    def _copy(self, given: Sequence[Given], stop: Stop) -> None:
        if not given:
            return
        source = self.context.config.source
        progress = ReadProgress(self.reporter, source.snapshot_rows_per_second)
        tables = [each.subject.live.schema.table for each in given]
        with self._exported() as snapshot:
            sessions = Sessions(
                url=self.context.pipeline.endpoints.source_url,
                snapshot=snapshot,
                tables=tables,
                silence=source.read_timeout_seconds,
                salt=masks_of(source).salt,
            )
            with reading(sessions, source.snapshot_readers, progress.read) as readers:
                copying = Copying(self.context, self.session, self.notes, self.operation.id)
                begun = copying.begin(readers, given, progress.expect)
                for one in begun:
                    self._each(one.given.subject, partial(copying.end, one), stop)

    def _each(self, subject: Subject, take: Callable[[], TableResult], stop: Stop) -> None:
        """Take a table, and give it back to the rounds; stop it if that fails."""
        try:
            result = take()
        except CdcError as error:
            stop(subject.live, error)
            return
        settle_earlier(self.context, self.operation, subject.live)
        self.reporter.done(result)
        self.context.freezer.thaw(self.context.topic(subject.live.schema.table))

    @contextmanager
    def _exported(self) -> Iterator[str]:
        """Yield a name of the moment's snapshot, for other sessions."""
        with translated("exporting the snapshot"):
            row = self.at.connection.execute("SELECT pg_export_snapshot()").fetchone()
        yield str(row[0]) if row else ""

    def _by_spark(self, subject: Subject) -> TableResult:
        """Read the table as ``resnapshot`` does, in a session of its own."""
        live = subject.live
        self.reporter.tell(phase=f"reading {live.schema.table}")
        source = self.context.config.source
        url = self.context.pipeline.endpoints.source_url
        with (
            self._exported() as snapshot,
            connect(url, answer_seconds=source.read_timeout_seconds) as connection,
        ):
            enter_snapshot(connection, snapshot, masks_of(source).salt)
            stage = Stage(
                spark=self.context.spark,
                moment=replace(self.at, connection=connection),
                target=subject.target,
                table=live.schema.table,
                folder=f"{self.folder}/{subject.number}",
                reporter=self.reporter,
            )
            staged = stage.whole()
        writer = ReadingWriter(self.context, self.session, subject, self.operation, self.reporter)
        return writer.in_place(staged)


def _given(subject: Subject, size: Extent) -> Given | None:
    """Return the table if it can be copied; None if Spark has to read it."""
    committer = committer_of(subject, size.pages)
    return None if committer is None else Given(subject=subject, committer=committer, size=size)
