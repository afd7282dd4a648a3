"""Brings a shadow to its table's position, while the table goes on for as long as possible.

A shadow is a reading written as a table of its own, which then replaces the lake's.
"""

from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import SparkSession

from cdc.apply.difference import row_difference
from cdc.apply.log_replay import replay
from cdc.apply.table.applied_table import AppliedTable
from cdc.errors import CdcError, ErrorKind
from cdc.operations.desk.context import JobContext
from cdc.operations.desk.reporter import Reporter

_ROUNDS: Final = 5
"""How often a shadow catches up while its table goes on, before the table is frozen for it."""
_NEAR: Final = 1000
"""How many offsets behind its table a shadow may be when the table is frozen."""


@dataclass(frozen=True, slots=True)
class Shadow:
    """Brings a shadow to the position of its live table; no other thread may use ``session``."""

    context: JobContext
    session: SparkSession
    live: AppliedTable
    shadow: AppliedTable
    reporter: Reporter

    @property
    def _topic(self) -> str:
        return self.context.topic(self.live.schema.table)

    def catch_up(self) -> None:
        """Bring the shadow near the table while that goes on; freeze the table for the rest."""
        self.reporter.tell(phase="catching up")
        for _ in range(_ROUNDS):
            self._replay()
            if self.context.last_cut().offsets[self._topic] - self.shadow.position.offset <= _NEAR:
                break
        self.context.freeze(self.live.schema.table, self.reporter)
        self._replay()

    def _replay(self) -> None:
        """Bring the shadow to the last cut."""
        self.reporter.safe_point()
        last, log = self.context.last_cut(), self.context.log.newest()
        replay(log.recorded(self._topic, last, log.notes_in(last)), self.shadow)
        if self.shadow.stopped:
            raise CdcError(
                ErrorKind.TABLE_STOPPED,
                f"the shadow of {self.shadow.schema.table} cannot follow the log",
                detail=self.shadow.reason,
                remedy=f"resnapshot it in place: wal2lake resnapshot {self.shadow.schema.table}",
            )
        if self.shadow.position.offset < last.offsets[self._topic]:
            self.shadow.move(replace(self.shadow.position, offset=last.offsets[self._topic]))

    def differences(self) -> dict[str, int]:
        """Count the rows in which the frozen table differs from the shadow, by kind."""
        self.reporter.tell(phase="comparing")
        if self.live.stopped or self.live.schema != self.shadow.schema:
            return {}
        read, held = (
            self.session.read.format("delta").load(table.path) for table in (self.shadow, self.live)
        )
        rows = row_difference.unlike(read, held, self.shadow.schema, 0)
        return {row[0]: row[1] for row in rows.groupBy(row_difference.KIND).count().collect()}
