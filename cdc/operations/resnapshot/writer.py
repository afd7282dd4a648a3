"""Defines what both writers of a reading share: the one on Spark, and the one in this process."""

from dataclasses import dataclass

from pyspark.sql import SparkSession

from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.table_content import TableContent
from cdc.lake.table.positions import Position
from cdc.operations.desk.context import JobContext
from cdc.operations.desk.reporter import Reporter
from cdc.operations.resnapshot.kept_reading import ReadingStore, Subject
from cdc.operations.resnapshot.result import ReadingResult
from cdc.operations.resnapshot.target import Target
from cdc.state.operation import Operation


@dataclass(frozen=True, slots=True)
class Writer:
    """Takes one reading of one table into the lake; no other thread may use ``session``."""

    context: JobContext
    session: SparkSession
    subject: Subject
    operation: Operation
    reporter: Reporter

    @property
    def live(self) -> AppliedTable:
        """Return the lake's table."""
        return self.subject.live

    @property
    def target(self) -> Target:
        """Return what the lake's table has to become."""
        return self.subject.target

    @property
    def result(self) -> ReadingResult:
        """Return what the reading does beside its rows."""
        return ReadingResult(self.context, self.subject, self.operation, self.reporter)

    @property
    def store(self) -> ReadingStore:
        """Return where the reading is kept."""
        return ReadingStore(self.context, self.session, self.subject, self.operation.id)

    def content(self, position: Position) -> TableContent:
        """Return what the lake's table is with the reading."""
        target = self.target
        return TableContent(schema=target.schema, structure=target.structure, position=position)
