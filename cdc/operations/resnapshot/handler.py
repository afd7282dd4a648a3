"""Reads a table again from the source while all others go on: docs/decisions/0014.

In place, the table is frozen at the cut at which the source is read, so every difference is an
error in it. The differences are merged in one commit, and the table catches up. With a shadow, the
table goes on meanwhile; the rows that were read catch up beside it and replace it in one commit.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import structlog

from cdc.apply.local.not_local import NotLocalError
from cdc.apply.table.applied_table import AppliedTable
from cdc.capture.exclude_unreadable import take_back
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import aside_path
from cdc.lake.table.removal import remove
from cdc.operations.desk.context import JobContext
from cdc.operations.desk.reporter import Reporter
from cdc.operations.resnapshot.once import Once
from cdc.operations.resnapshot.read import Stage, Staged
from cdc.operations.resnapshot.result import settle
from cdc.operations.resnapshot.small_reading import is_small
from cdc.operations.resnapshot.target import refuse_in_part
from cdc.source.catalog.captured import captured_tables
from cdc.source.catalog.catalog import SourceTable
from cdc.source.predicate.postgres_check import predicate
from cdc.source.predicate.predicate import refuse_unlike
from cdc.source.server.connection import connect
from cdc.state.operation import SHADOW, Operation, TableResult
from cdc.tables import TableId

_ATTEMPTS: Final = 3
logger = structlog.get_logger(__name__)


class Resnapshot:
    """Handles ``resnapshot``; options: mode, where, keys (JSON), offsets (JSON)."""

    def __init__(self, context: JobContext) -> None:
        self._context = context

    def __call__(self, operation: Operation, reporter: Reporter) -> None:
        """Resnapshot the operation's tables one after the other."""
        folder = aside_path(self._context.config, operation.id)
        try:
            for name in reporter.remaining(operation.tables):
                reporter.safe_point()
                reporter.tell(table=name, phase="waiting for the cut")
                reporter.done(self._table(TableId.parse(name), operation, reporter, folder))
        finally:
            remove(self._context.spark, folder)

    def _table(
        self, table: TableId, operation: Operation, reporter: Reporter, folder: str
    ) -> TableResult:
        started = time.monotonic()
        result = self._committed(table, operation, reporter)
        for attempt in range(_ATTEMPTS):
            try:
                result = result or self._once(table, operation, reporter, folder)
                break
            except CdcError as error:
                if error.kind is not ErrorKind.CONFLICT or attempt + 1 == _ATTEMPTS:
                    raise
        assert result is not None  # noqa: S101 - the last attempt returned it, or raised
        reporter.tell(phase="waiting for the barrier")
        after = self._context.await_streaming(table, reporter)
        return replace(result, cut_after=after, seconds=round(time.monotonic() - started, 3))

    def _committed(
        self, table: TableId, operation: Operation, reporter: Reporter
    ) -> TableResult | None:
        """Return the result, and settle events, where an earlier start committed the reading.

        The job died after that commit; None where there was none.
        """
        commit = reporter.progress.commit
        if commit is None or commit.result.table != str(table):
            return None
        if self._context.live(table).position.reading != commit.reading:
            return None
        events = self._context.quarantine.rows(str(table), only_open=True, with_values=False)
        settle(self._context, operation, [e for e in events if e.offset in commit.settles])
        return commit.result

    def _once(
        self, table: TableId, operation: Operation, reporter: Reporter, folder: str
    ) -> TableResult:
        source = self._source(table)
        # Otherwise no event of the table would arrive after the reading.
        take_back(self._context.pipeline, source)
        shadow = operation.options.get("mode") == SHADOW
        if not shadow and not operation.options.get("where") and self._is_small(source):
            logger.info("resnapshot", table=str(table), by="job")
            try:
                with self._context.flagged(table) as live:
                    once = Once(self._context, operation, reporter, source, live)
                    return once.here(_keys(operation.options))
            except NotLocalError as error:
                logger.info("left to Spark", table=str(table), reason=str(error))
        logger.info("resnapshot", table=str(table), by="Spark")
        with self._context.flagged(table, at_once=not shadow) as live:
            remove(self._context.spark, folder)
            read = partial(_read, live=live, options=operation.options, source=source)
            return Once(self._context, operation, reporter, source, live).by_spark(folder, read)

    def _is_small(self, source: SourceTable) -> bool:
        """Return whether this process reads the table and commits to it, and not Spark."""
        if not self._context.config.job.local_events:
            return False
        with connect(self._context.pipeline.endpoints.source_url) as connection:
            return is_small(connection, source.oid, self._context.live(source.table).path)

    def _source(self, table: TableId) -> SourceTable:
        """Return the source's table; raise SOURCE_NOT_READY where the lake cannot keep it now."""
        self._context.live(table)
        captured = [live.schema.table for live in self._context.tables.values()]
        with connect(self._context.pipeline.endpoints.source_url) as connection:
            sources = captured_tables(connection, self._context.config, captured)
        source = next((source for source in sources if source.table == table), None)
        if source is None or source.unfit is not None:
            unfit = source.unfit if source else None
            raise CdcError(
                ErrorKind.SOURCE_NOT_READY,
                f"{table}: {unfit.message}" if unfit else f"{table} is not in the source",
                remedy=unfit.remedy if unfit else "wal2lake check",
            )
        return source


def _read(
    stage: Stage, live: AppliedTable, options: Mapping[str, str], source: SourceTable
) -> Staged:
    where, keys = options.get("where"), _keys(options)
    if not where and keys is None:
        return stage.whole()
    refuse_in_part(stage.target, live)
    held = stage.spark.read.format("delta").load(live.path)
    if where:
        part = predicate(stage.moment.connection, stage.table, source.columns, where)
        refuse_unlike(part, {column.name: column.type for column in live.schema.columns})
        return stage.within(part, held)
    return stage.of_keys(keys or [], held)


def _keys(options: Mapping[str, str]) -> Sequence[Sequence[str]] | None:
    """Return the keys that are asked for, as texts; None for all rows."""
    texts = options.get("keys")
    return [tuple(map(str, key)) for key in json.loads(texts)] if texts else None
