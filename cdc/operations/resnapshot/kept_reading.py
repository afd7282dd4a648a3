"""Keeps a reading of a table beside the log, where a rebuild from the log finds it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from cdc.apply.table.applied_table import AppliedTable
from cdc.client.moment import Moment
from cdc.failpoints import Failpoint, reach
from cdc.lake.layout import reading_path
from cdc.lake.records.readings import Reading
from cdc.lake.table.positions import Position, open_table
from cdc.lake.table.removal import remove
from cdc.operations.desk.context import JobContext
from cdc.operations.resnapshot.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Say what one reading is of: a table, what it has to become, and when."""

    live: AppliedTable
    target: Target
    at: Moment
    number: int  # of the reading


@dataclass(frozen=True, slots=True)
class ReadingStore:
    """Writes one reading, whole or only its difference, and its line in the index of readings."""

    context: JobContext
    session: SparkSession
    subject: Subject
    operation: str  # id of the operation that reads

    def keep_whole(self, position: Position, write: Callable[[str], None]) -> str:
        """Have the reading written as a table of its own, add it to the index; return its path."""
        path = self.free_path()
        reach(Failpoint.BEFORE_READING_WRITE)
        write(path)
        reach(Failpoint.AFTER_READING_WRITE)
        self.record(position, path, whole=True)
        return path

    def write_difference(self, path: str, write: Callable[[str], None]) -> None:
        """Have the rows of a difference written; they are no reading before ``record``."""
        reach(Failpoint.BEFORE_DIFFERENCE_WRITE)
        write(path)
        reach(Failpoint.AFTER_DIFFERENCE_WRITE)

    def record(self, position: Position, path: str, *, whole: bool) -> None:
        """Add what lies at ``path`` to the index of readings."""
        opened, cut = open_table(path), self.subject.at.cut
        reach(Failpoint.BEFORE_READING_RECORD)
        self.context.readings.add(
            Reading(
                number=self.subject.number,
                table=str(self.subject.live.schema.table),
                whole=whole,
                path=path,
                version=opened.version() if opened else 0,
                position=position,
                lsn=self.subject.at.lsn,
                cut=cut.cut,
                landing=cut.landing_floor,
                operation=self.operation,
                made_at=datetime.now(UTC),
            )
        )
        reach(Failpoint.AFTER_READING_RECORD)

    def path(self, suffix: str = "") -> str:
        """Return where the reading lies, or something that belongs to it."""
        table, number = self.subject.live.schema.table, self.subject.number
        path = reading_path(self.context.config, table, number)
        return f"{path}.{suffix}" if suffix else path

    def free_path(self, suffix: str = "") -> str:
        """Return a path at which nothing is: an interrupted run may have left something there."""
        path = self.path(suffix)
        remove(self.session, path)
        return path
