"""Gives the readers the ranges of each table, and takes each table when its ranges are read."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from pyspark.sql import SparkSession

from cdc.apply.table.structure_notes import PlacedNote
from cdc.errors import CdcError, ErrorKind
from cdc.lake.commit.committer import Committer
from cdc.lake.files.store_of import store_of
from cdc.operations.desk.context import JobContext
from cdc.operations.first_snapshot.copied_table import CopiedRange, CopiedTable
from cdc.operations.first_snapshot.page_range import Extent, page_ranges
from cdc.operations.first_snapshot.reader import Readers
from cdc.operations.first_snapshot.taking import Taking
from cdc.operations.resnapshot.kept_reading import Subject
from cdc.operations.resnapshot.read import refuse_many
from cdc.state.operation import TableResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Describes a table that is to be copied; ``committer`` is the only one that commits to it."""

    subject: Subject
    committer: Committer
    size: Extent


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """Holds a table with its ranges, which the readers have been given."""

    given: Given
    ranges: Sequence[Future[CopiedRange]]


@dataclass(frozen=True, slots=True)
class Copying:
    """Copies tables at one moment."""

    context: JobContext
    session: SparkSession
    notes: Sequence[PlacedNote]  # structure changes inside the cut
    operation: str  # id

    def begin(
        self, readers: Readers, tables: Sequence[Given], expect: Callable[[int], None]
    ) -> list[Begun]:
        """Give the readers all tables, in order; ``expect`` is called with the rows of all."""
        expect(sum(each.size.rows for each in tables))
        return [self._begun(readers, each) for each in tables]

    def end(self, begun: Begun) -> TableResult:
        """Wait until all ranges of the table are read, and commit them."""
        subject = begun.given.subject
        try:
            parts = [part.result() for part in begun.ranges]
        finally:
            for part in begun.ranges:
                part.cancel()
        reasons = [row.reason for part in parts for row in part.refused]
        refuse_many(reasons, subject.live.schema.table)
        taking = Taking(
            context=self.context,
            session=self.session,
            subject=subject,
            committer=begun.given.committer,
            notes=self.notes,
            operation=self.operation,
        )
        return taking.take(parts)

    def _begun(self, readers: Readers, given: Given) -> Begun:
        table = _copied_table(given)
        ranges = [readers.submit(table, part) for part in page_ranges(given.size.pages)]
        return Begun(given=given, ranges=ranges)


def _copied_table(given: Given) -> CopiedTable:
    live, at = given.subject.live, given.subject.at
    entry = at.cut.entry(str(live.schema.table))
    if entry is None:
        raise CdcError(ErrorKind.INTERNAL, "the cut of the reading lacks the table")
    return CopiedTable(
        table=live.schema.table,
        target=given.subject.target,
        files=store_of(live.path),
        metadata=given.committer.open().metadata,
        offset=entry.offset,
    )
