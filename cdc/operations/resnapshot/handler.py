"""A table is read again from the source, while all others go on: docs/decisions/0014.

In place, the table waits at the cut at which the source is read, so what differs is what is wrong
in it; the differences are merged in one commit, and the table catches up. As a shadow, it goes on
meanwhile; what was read catches up beside it and replaces it in one commit.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from cdc.apply.table.applied_table import AppliedTable
from cdc.capture.passed_over import take_back
from cdc.client.moment import Moment, moment
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import aside_path
from cdc.lake.table.removal import remove
from cdc.operations.desk.context import CUT_SECONDS, JobContext
from cdc.operations.desk.reporter import Reporter
from cdc.operations.resnapshot.commit import Taking, settle
from cdc.operations.resnapshot.read import Stage, Staged
from cdc.operations.resnapshot.target import described
from cdc.source.catalog.captured import captured_tables
from cdc.source.catalog.catalog import SourceTable
from cdc.source.predicate.check import predicate
from cdc.source.predicate.predicate import refuse_unlike
from cdc.source.server.connection import connect
from cdc.state.operation import SHADOW, Operation, TableResult
from cdc.tables import TableId

_ATTEMPTS: Final = 3
_ROWS: Final = "SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = %s"


class Resnapshot:
    """The handler of ``resnapshot``; options: mode, where, keys (JSON), offsets (JSON)."""

    def __init__(self, context: JobContext) -> None:
        self._context = context

    def __call__(self, operation: Operation, reporter: Reporter) -> None:
        folder = aside_path(self._context.config, operation.id)
        try:
            for name in reporter.left(operation.tables):
                reporter.point()
                reporter.tell(table=name, phase="waiting for the cut")
                reporter.done(self._table(TableId.parse(name), operation, reporter, folder))
        finally:
            remove(self._context.spark, folder)

    def _table(
        self, table: TableId, operation: Operation, reporter: Reporter, folder: str
    ) -> TableResult:
        started = time.monotonic()
        found = self._committed(table, operation, reporter)
        for attempt in range(_ATTEMPTS):
            try:
                found = found or self._once(table, operation, reporter, folder)
                break
            except CdcError as error:
                if error.kind is not ErrorKind.CONFLICT or attempt + 1 == _ATTEMPTS:
                    raise
        assert found is not None  # noqa: S101 - the last attempt gave it, or has raised
        reporter.tell(phase="waiting for the barrier")
        after = self._context.await_streaming(table, reporter)
        return replace(found, cut_after=after, seconds=round(time.monotonic() - started, 3))

    def _committed(
        self, table: TableId, operation: Operation, reporter: Reporter
    ) -> TableResult | None:
        """What came of it where the job died after it had brought the reading into the table."""
        commit = reporter.progress.commit
        if commit is None or commit.result.table != str(table):
            return None
        if self._context.live(table).position.reading != commit.reading:
            return None
        known = self._context.quarantine.rows(str(table), only_open=True, with_values=False)
        settle(self._context, operation, [e for e in known if e.offset in commit.settles])
        return commit.result

    def _once(
        self, table: TableId, operation: Operation, reporter: Reporter, folder: str
    ) -> TableResult:
        source = self._source(table)
        # Else nothing of it would arrive after the reading.
        take_back(self._context.config, self._context.endpoints, source)
        shadow = operation.options.get("mode") == SHADOW
        with self._context.flagged(table, at_once=not shadow) as live:
            remove(self._context.spark, folder)
            with self._moment(source, reporter, frozen=not shadow) as at:
                text = at.structures[source.oid]
                to_be = described(self._context.config, live, text)
                stage = Stage(
                    spark=self._context.spark,
                    moment=at,
                    described=to_be,
                    table=table,
                    folder=folder,
                    reporter=reporter,
                )
                staged = _read(stage, live, operation.options, source)
            taking = Taking(
                context=self._context,
                session=self._context.spark.newSession(),
                live=live,
                to_be=to_be,
                at=at,
                operation=operation,
                reporter=reporter,
                number=self._context.readings.next_number(),
            )
            return taking.replace(staged) if shadow else taking.in_place(staged)

    def _source(self, table: TableId) -> SourceTable:
        """Raises SOURCE_NOT_READY for one that cannot be kept now."""
        self._context.live(table)
        known = [found.schema.table for found in self._context.tables.values()]
        with connect(self._context.endpoints.source_url) as connection:
            sources = captured_tables(connection, self._context.config, known)
        found = next((source for source in sources if source.table == table), None)
        if found is None or found.unfit is not None:
            unfit = found.unfit if found else None
            raise CdcError(
                ErrorKind.SOURCE_NOT_READY,
                f"{table}: {unfit.message}" if unfit else f"{table} is not in the source",
                remedy=unfit.remedy if unfit else "wal2lake check",
            )
        return found

    @contextmanager
    def _moment(self, source: SourceTable, reporter: Reporter, *, frozen: bool) -> Iterator[Moment]:
        freezer, topic = self._context.freezer, self._context.topic(source.table)
        asked: list[str] = []

        def asking(request: str) -> None:
            asked.append(request)
            if frozen:
                freezer.freeze_at(request, [topic])

        try:
            with moment(
                self._context.config,
                self._context.endpoints,
                timeout=CUT_SECONDS,
                tables={source.oid: source.table},
                tell=lambda _: reporter.point(),
                asking=asking,
                looking=lambda _: reporter.point(),
            ) as found:
                reporter.tell(phase="reading", rows_expected=_expected(found, source))
                yield found
        finally:
            for request in asked:
                freezer.forget(request)


def _read(
    stage: Stage, live: AppliedTable, options: Mapping[str, str], source: SourceTable
) -> Staged:
    if _is_whole(options):
        return stage.whole()
    if not stage.described.same or live.stopped:
        raise CdcError(
            ErrorKind.CONFLICT,
            f"a part of {stage.table} cannot be read: the lake's table is stopped, or has other "
            "columns",
            remedy=f"wal2lake resnapshot {stage.table}, without a predicate",
        )
    held = stage.spark.read.format("delta").load(live.path)
    if where := options.get("where"):
        part = predicate(stage.moment.connection, stage.table, source.columns, where)
        refuse_unlike(part, {column.name: column.type for column in live.schema.columns})
        return stage.within(part, held)
    return stage.of_keys(_keys(options), held)


def _keys(options: Mapping[str, str]) -> Sequence[Sequence[str]]:
    return [tuple(map(str, key)) for key in json.loads(options["keys"])]


def _is_whole(options: Mapping[str, str]) -> bool:
    return not options.get("where") and not options.get("keys")


def _expected(found: Moment, source: SourceTable) -> int | None:
    row = found.connection.execute(_ROWS, (source.oid,)).fetchone()
    return int(row[0]) if row and row[0] else None
