"""Takes the files that the readers have written into a table, in one commit with the position.

The process may die after every durable step: refused rows, the reading, its line in the index, the
table's commit. What is not in that commit is in no version of the table.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

import structlog
from pyspark.sql import SparkSession

from cdc.apply.table.structure_notes import PlacedNote
from cdc.apply.table.table_content import TableContent
from cdc.failpoints import Failpoint, reach
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.log_entry import Origin
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.replay import LiveFile
from cdc.lake.create.linked_table import link_table
from cdc.lake.table.positions import Position
from cdc.operations.desk.context import JobContext
from cdc.operations.first_snapshot.copied_table import CopiedRange
from cdc.operations.first_snapshot.numbered import can_be_numbered
from cdc.operations.resnapshot.kept_reading import ReadingStore, Subject
from cdc.operations.resnapshot.place import position_at
from cdc.operations.resnapshot.read import refused_rows
from cdc.state.operation import TableResult

logger = structlog.get_logger(__name__)


def committer_of(subject: Subject, pages: int) -> Committer | None:
    """Return what commits the table's first rows; None where Spark has to.

    That is a table whose columns are others by now, which is replaced whole, and a large one whose
    equal rows have to be numbered. ``pages`` is its size in the source.
    """
    schema = subject.target.schema
    if not subject.target.same or not can_be_numbered(schema, pages):
        return None
    try:
        committer = Committer(subject.live.path)
        empty = not committer.open().files
    except TakeMergeError as error:
        logger.info("first snapshot by Spark", table=str(schema.table), reason=error.reason)
        return None
    return committer if empty else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """Takes one table; ``committer`` has its first version open, which has no rows."""

    context: JobContext
    session: SparkSession
    subject: Subject
    committer: Committer
    notes: Sequence[PlacedNote]  # structure changes inside the cut
    operation: str  # id

    def take(self, ranges: Sequence[CopiedRange]) -> TableResult:
        """Commit all ranges of the table, and return the result."""
        files = [file for part in ranges for file in part.files]
        position = self._position(ranges)
        self._keep(files, position)
        self.committer.append(files, position)
        target = self.subject.target
        self.subject.live.replace_content(
            TableContent(schema=target.schema, structure=target.structure, position=position)
        )
        return TableResult(
            table=str(self.subject.live.schema.table),
            rows_read=sum(part.rows for part in ranges),
            added=sum(file.records for file in files),
            refused=position.refused,
            cut_before=self.subject.at.cut.cut,
        )

    def _position(self, ranges: Sequence[CopiedRange]) -> Position:
        table = self.subject.live.schema.table
        texts = [(row.key, row.reason) for part in ranges for row in part.refused]
        events = refused_rows(texts, table, self.context.topic(table), self.subject.number)
        self.context.quarantine.add(events)
        position = position_at(self.context, self.subject, self.notes, len(events))
        return replace(position, rows_applied=sum(part.rows for part in ranges))

    def _keep(self, files: Sequence[LiveFile], position: Position) -> None:
        """Keep the rows as a whole reading, as they are not in the log."""
        store = ReadingStore(self.context, self.session, self.subject, self.operation)
        path, live = store.free_path(), self.subject.live.path
        reach(Failpoint.BEFORE_COPY_KEEP)
        link_table(live, files, path, _origin(files, position))
        reach(Failpoint.AFTER_COPY_KEEP)
        store.record(position, path, whole=True)


def _origin(files: Sequence[LiveFile], position: Position) -> Origin:
    return Origin(
        read_version=-1,
        millis=int(time.time() * 1000),
        metadata=position.metadata(),
        transaction=str(uuid4()),
        counts={"numOutputRows": sum(file.records for file in files)},
    )
