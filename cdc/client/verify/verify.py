"""Compare the source with the lake at one position, while both are being written.

A temporary slot exports a snapshot of the source with its LSN; the job is asked for a cut that ends
exactly there; then every row and every value of both is compared.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from cdc.client.moment import Moment, locked_if_unaltered, moment, tables_of
from cdc.client.verify.verdict import TableVerdict, compare_table
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.lake.upkeep.held import held
from cdc.source.catalog.captured import captured_tables
from cdc.source.catalog.catalog import SourceTable
from cdc.source.server.connection import Connection, connect
from cdc.state.pipeline import Pipeline
from cdc.tables import TableId
from cdc.waiting import again_on_conflict

_MOMENTS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """Gives the verdicts on all tables, at one cut unless one names a later cut (``again_at``)."""

    cut: int
    lsn: int  # the position at which the source was read
    seconds: float
    tables: tuple[TableVerdict, ...]

    @property
    def equal(self) -> bool:
        """Return whether every table is equal."""
        return all(table.equal for table in self.tables)


def verify(
    pipeline: Pipeline, *, timeout: float, tell: Callable[[str], None] = lambda _: None
) -> VerifyReport:
    """Compare all captured tables.

    A table that is truncated or altered before its rows are read is compared again at a later cut.
    ``timeout`` is in seconds; ``tell`` is called with what is being waited for or compared. Raises
    TIMEOUT when the job does not publish the cut in time.
    """
    started = time.monotonic()
    with held(pipeline.config.lake.path):
        with moment(pipeline, timeout=timeout, tell=tell) as first:
            compared = list(_compare_all(pipeline, first, tell))
        verdicts = tuple(
            verdict or _compare_again(pipeline, table, timeout, tell) for table, verdict in compared
        )
    seconds = time.monotonic() - started
    return VerifyReport(cut=first.cut.cut, lsn=first.lsn, seconds=seconds, tables=verdicts)


def _compare_all(
    pipeline: Pipeline, at: Moment, tell: Callable[[str], None]
) -> Iterator[tuple[TableId, TableVerdict | None]]:
    """Yield a verdict on each table; None if it was truncated or altered since the moment."""
    with connect(pipeline.endpoints.source_url) as now:
        for table in captured_tables(at.connection, pipeline.config, tables_of(at.cut)):
            tell(f"comparing {table.table}")
            yield table.table, _compare(pipeline.config, at, now, table)


def _compare(
    config: Config, at: Moment, now: Connection, table: SourceTable
) -> TableVerdict | None:
    with locked_if_unaltered(at.connection, now, table) as readable:
        if not readable:
            return None
        entry = at.cut.entry(str(table.table))
        return compare_table(at.connection, table, entry, _scratch(config))


def _compare_again(
    pipeline: Pipeline, table: TableId, timeout: float, tell: Callable[[str], None]
) -> TableVerdict:
    """Compare the table at a later cut, locked from then on so that nobody alters it first.

    Only one table is locked at a time, so this cannot deadlock with somebody who alters two. Raises
    CONFLICT if the table is altered just before the lock at every attempt.
    """
    tell(f"comparing {table} again")
    with connect(pipeline.endpoints.source_url) as now:
        again = again_on_conflict(_MOMENTS)
        return again(_compare_later, pipeline, now, table, timeout=timeout, tell=tell)


def _compare_later(
    pipeline: Pipeline,
    now: Connection,
    table: TableId,
    *,
    timeout: float,
    tell: Callable[[str], None],
) -> TableVerdict:
    config = pipeline.config
    locked = {source.oid: table for source in _captured(now, config, table) if source.oid}
    with moment(pipeline, timeout=timeout, tables=locked, tell=tell) as later:
        for source in _captured(later.connection, config, table):
            if verdict := _compare(config, later, now, source):
                return replace(verdict, again_at=later.cut.cut)
    raise CdcError(
        ErrorKind.CONFLICT,
        f"{table} was re-created just before it was compared",
        remedy="try again while nobody alters or truncates the table",
    )


def _captured(connection: Connection, config: Config, table: TableId) -> list[SourceTable]:
    """Return the table, even if the source no longer has it."""
    return [t for t in captured_tables(connection, config, [table]) if t.table == table]


def _scratch(config: Config) -> Path:
    folder = config.state_dir / "scratch"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
