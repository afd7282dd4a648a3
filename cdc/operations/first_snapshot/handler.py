"""Handles ``snapshot``: reads the tables that have no rows yet, all at one moment.

The tables wait at the beginning of their topics meanwhile. Each follows from the moment on as soon
as its rows are in its one commit. If the moment is lost (the source restarts, a table is altered
just then), the tables that are left are read at another one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import structlog

from cdc.apply.table.applied_table import AppliedTable
from cdc.client.moment import moment
from cdc.errors import CdcError, ErrorKind
from cdc.lake.files.unreachable import store_errors_named
from cdc.lake.layout import aside_path
from cdc.lake.table.positions import UNREAD
from cdc.lake.table.removal import remove
from cdc.observe.defects import error_text
from cdc.operations.desk.context import CUT_SECONDS, JobContext
from cdc.operations.desk.reporter import Reporter
from cdc.operations.first_snapshot.attempt import Attempt
from cdc.operations.first_snapshot.settling import settle_earlier
from cdc.operations.resnapshot.read import newest_number
from cdc.source.catalog.captured import captured_tables
from cdc.source.catalog.catalog import SourceTable
from cdc.source.server.connection import connect
from cdc.state.operation import Operation, TableResult
from cdc.tables import TableId

_ATTEMPTS: Final = 10
_MOST_WAIT: Final = 60.0
_OF_THE_MOMENT: Final = frozenset(
    {ErrorKind.CONFLICT, ErrorKind.TIMEOUT, ErrorKind.UNREACHABLE, ErrorKind.CANCELLED}
)
"""Errors that end the attempt. Any other one stops the table that it is about."""
logger = structlog.get_logger(__name__)


class FirstSnapshot:
    """Reads the tables of an operation; one that cannot be read stops, and the others go on."""

    def __init__(self, context: JobContext) -> None:
        self._context = context

    def __call__(self, operation: Operation, reporter: Reporter) -> None:
        """Read the tables that have no rows yet; raise the first error that stopped one of them."""
        run = _Run(self._context, operation, reporter)
        with run.stopping_the_rest():
            run.attempts()
        run.await_streaming()
        for error in run.failed:
            raise error


class _Run:
    """Runs one operation."""

    def __init__(self, context: JobContext, operation: Operation, reporter: Reporter) -> None:
        self._context = context
        self._operation = operation
        self._reporter = reporter
        self.failed: list[CdcError] = []
        """Of each table that had to stop."""

    def attempts(self) -> None:
        """Read all tables, at as many moments as that takes."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                with store_errors_named():
                    self._once()
            except CdcError as error:
                again = error.kind in _OF_THE_MOMENT - {ErrorKind.CANCELLED}
                if not again or attempt == _ATTEMPTS:
                    raise
                logger.warning("first snapshot", attempt=attempt, failed=str(error))
                self._reporter.tell(phase="waiting for another attempt")
                self._reporter.wait(min(2.0**attempt, _MOST_WAIT))
            else:
                return

    @contextmanager
    def stopping_the_rest(self) -> Iterator[None]:
        """Stop the tables that are left if the block fails, but not if the job only ends."""
        folder = aside_path(self._context.config, self._operation.id)
        try:
            yield
        except Exception as error:
            self._reporter.refuse_ended()
            for live in self._waiting():
                self._stop(live, _explained(error))
            raise
        finally:
            remove(self._context.spark, folder)

    def await_streaming(self) -> None:
        """Return when a cut has the tables that were read."""
        read = [live for live in self._lives() if live.position.reading > 0 and not live.stopped]
        if read:
            self._reporter.tell(phase="waiting for the barrier")
            self._context.await_streaming(read[-1].schema.table, self._reporter)

    def _once(self) -> None:
        """Read the waiting tables at one moment."""
        self._report_read()
        waiting = {live.schema.table: live for live in self._waiting()}
        sources = self._sources(waiting) if waiting else []
        if not sources:
            return
        self._reporter.tell(phase="waiting for the cut")
        with moment(
            self._context.pipeline,
            timeout=CUT_SECONDS,
            tables={source.oid: source.table for source in sources},
            tell=lambda _: self._reporter.safe_point(),
            on_look=lambda _: self._reporter.safe_point(),
        ) as at:
            attempt = Attempt(
                context=self._context,
                operation=self._operation,
                reporter=self._reporter,
                at=at,
                notes=self._context.log.newest().notes(at.cut.notes_offset),
                session=self._context.spark.newSession(),
                folder=aside_path(self._context.config, self._operation.id),
            )
            pairs = [(source, waiting[source.table]) for source in sources]
            attempt.read(pairs, self._number(waiting), self._stop_or_raise)

    def _stop_or_raise(self, live: AppliedTable, error: CdcError) -> None:
        if error.kind in _OF_THE_MOMENT:
            raise error
        self._stop(live, error)

    def _stop(self, live: AppliedTable, error: CdcError) -> None:
        name = live.schema.table
        remedy = f"wal2lake resnapshot {name}"
        live.stop(
            f"its first snapshot failed: {error.message}",
            remedy=f"{error.remedy}; then {remedy}" if error.remedy else remedy,
            code=error.reason,
        )
        self.failed.append(error)
        self._context.freezer.thaw(self._context.topic(name))

    def _waiting(self) -> list[AppliedTable]:
        """Return the operation's tables that have no rows yet, and are not stopped."""
        waits = (live for live in self._lives() if live.position.reading == UNREAD)
        return [live for live in waits if not live.stopped]

    def _lives(self) -> list[AppliedTable]:
        """Return the operation's tables without those that are no longer captured."""
        topics = (self._context.topic(TableId.parse(name)) for name in self._operation.tables)
        found = (self._context.tables.get(topic) for topic in topics)
        return [live for live in found if live is not None]

    def _number(self, tables: Iterable[TableId]) -> int:
        """Return the number of the next reading.

        No row that an interrupted attempt has refused comes from a reading of that number.
        """
        rows = self._context.quarantine.rows
        refused = (newest_number(rows(str(table), with_values=False)) for table in tables)
        return max(self._context.readings.next_number(), max(refused) + 1)

    def _sources(self, waiting: Mapping[TableId, AppliedTable]) -> Sequence[SourceTable]:
        """Return the waiting tables as the source has them; stop those that are unfit."""
        with connect(self._context.pipeline.endpoints.source_url) as connection:
            found = captured_tables(connection, self._context.config, list(waiting))
        fit = [each for each in found if each.unfit is None and each.table in waiting]
        unfit = {each.table: each.unfit for each in found if each.unfit is not None}
        for name in waiting.keys() - {each.table for each in fit}:
            finding = unfit.get(name)
            why = finding.message if finding else "it is not in the source"
            remedy = finding.remedy if finding else "wal2lake check"
            error = CdcError(ErrorKind.SOURCE_NOT_READY, f"{name}: {why}", remedy=remedy)
            self._stop(waiting[name], error)
        return fit

    def _report_read(self) -> None:
        """Report tables whose commit was made before the job died."""
        remaining = set(self._reporter.remaining(self._operation.tables))
        for live in self._lives():
            name = str(live.schema.table)
            if name in remaining and live.position.reading > 0:
                settle_earlier(self._context, self._operation, live)
                rows, refused = live.position.rows_applied, live.position.refused
                self._reporter.done(TableResult(table=name, rows_read=rows, refused=refused))


def _explained(error: Exception) -> CdcError:
    if isinstance(error, CdcError):
        return error
    return CdcError(ErrorKind.INTERNAL, error_text(error), remedy="see the job's log file")
