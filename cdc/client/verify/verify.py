"""Compare the source with the lake at one position, while both are being written.

A temporary slot gives a snapshot of the source and the LSN it stands at; the job is asked for a
cut that ends exactly there; then every row and every value of both is compared.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from tenacity import Retrying, retry_if_exception, stop_after_attempt

from cdc.client.moment import Moment, as_it_was, moment, tables_of
from cdc.client.verify.verdict import TableVerdict, compare_table
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.source.catalog.captured import captured_tables
from cdc.source.catalog.catalog import SourceTable
from cdc.source.server.connection import Connection, connect
from cdc.state.endpoints import Endpoints
from cdc.tables import TableId

_MOMENTS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All tables at one cut, but for those that say which later one theirs is."""

    cut: int
    lsn: int  # the source was read at this position
    seconds: float
    tables: tuple[TableVerdict, ...]

    @property
    def equal(self) -> bool:
        return all(table.equal for table in self.tables)


def verify(
    config: Config,
    endpoints: Endpoints,
    *,
    timeout: float,
    tell: Callable[[str], None] = lambda _: None,
) -> Report:
    """Compare all captured tables; raises TIMEOUT when the job gives no cut in time.

    A table that is truncated or altered before its rows are read is compared again at a later cut.

    ``tell`` hears what is being waited for or compared.
    """
    started = time.monotonic()
    with moment(config, endpoints, timeout=timeout, tell=tell) as first:
        found = list(_compare_all(config, endpoints, first, tell))
    verdicts = tuple(
        verdict or _compare_again(config, endpoints, table, timeout, tell)
        for table, verdict in found
    )
    seconds = time.monotonic() - started
    return Report(cut=first.cut.cut, lsn=first.lsn, seconds=seconds, tables=verdicts)


def _compare_all(
    config: Config, endpoints: Endpoints, at: Moment, tell: Callable[[str], None]
) -> Iterator[tuple[TableId, TableVerdict | None]]:
    """None for a table that was truncated or altered since: it cannot be read as of the moment."""
    with connect(endpoints.source_url) as now:
        for table in captured_tables(at.connection, config, tables_of(at.cut)):
            tell(f"comparing {table.table}")
            yield table.table, _compare(config, at, now, table)


def _compare(
    config: Config, at: Moment, now: Connection, table: SourceTable
) -> TableVerdict | None:
    with as_it_was(at.connection, now, table) as readable:
        if not readable:
            return None
        entry = at.cut.entry(str(table.table))
        return compare_table(at.connection, table, entry, _scratch(config))


def _compare_again(
    config: Config,
    endpoints: Endpoints,
    table: TableId,
    timeout: float,
    tell: Callable[[str], None],
) -> TableVerdict:
    """At a later cut, locked from its moment on, so that nobody alters it before it is read.

    One table at a time: who alters two of them cannot stand in a deadlock with this. Raises
    CONFLICT where it is altered in the very moment, again and again.
    """
    attempts = Retrying(
        stop=stop_after_attempt(_MOMENTS), retry=retry_if_exception(_is_conflict), reraise=True
    )
    tell(f"comparing {table} again")
    with connect(endpoints.source_url) as now:
        return attempts(_compare_later, config, endpoints, now, table, timeout=timeout, tell=tell)


def _compare_later(
    config: Config,
    endpoints: Endpoints,
    now: Connection,
    table: TableId,
    *,
    timeout: float,
    tell: Callable[[str], None],
) -> TableVerdict:
    locked = {found.oid: table for found in _captured(now, config, table) if found.oid}
    with moment(config, endpoints, timeout=timeout, tables=locked, tell=tell) as later:
        for found in _captured(later.connection, config, table):
            if verdict := _compare(config, later, now, found):
                return replace(verdict, again_at=later.cut.cut)
    raise CdcError(
        ErrorKind.CONFLICT,
        f"{table} was made anew while it was about to be compared",
        remedy="try again when nobody alters or truncates it",
    )


def _captured(connection: Connection, config: Config, table: TableId) -> list[SourceTable]:
    """The table, also where the source has it no more."""
    return [t for t in captured_tables(connection, config, [table]) if t.table == table]


def _is_conflict(error: BaseException) -> bool:
    return isinstance(error, CdcError) and error.kind is ErrorKind.CONFLICT


def _scratch(config: Config) -> Path:
    folder = config.state_dir / "scratch"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
