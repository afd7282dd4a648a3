"""Compare the source with the lake at one position, while both are being written.

A temporary slot gives a snapshot of the source and the LSN it stands at; the job is asked for a
cut that ends exactly there; then every row and every value of both is compared.
"""

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from psycopg import IsolationLevel, sql

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path
from cdc.lake.ledger import Ledger, LedgerRow
from cdc.operate import requests
from cdc.operate.cuts import wait_for_cut
from cdc.operate.hang import where_it_hangs
from cdc.operate.render import SETTINGS
from cdc.operate.requests import Request
from cdc.operate.table_verdict import TableVerdict, compare_table
from cdc.source import barrier
from cdc.source.captured import captured_tables
from cdc.source.postgres import Connection, connect
from cdc.source.snapshot import exported_snapshot
from cdc.stack.endpoints import Endpoints
from cdc.tables import TableId

SNAPSHOT_SECONDS: Final = 60.0
"""How long an open transaction in the source may delay the snapshot: the job publishes nothing
meanwhile, so this is also how long a ``verify`` that was killed can hold it."""


MARGIN_SECONDS: Final = 30.0
"""Between the end of the snapshot's time and that of the hold: connecting takes time too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All tables at one cut."""

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

    ``tell`` hears what is being waited for or compared.
    """
    started = time.monotonic()
    tell("taking a snapshot of the source")
    with (
        _hold(config) as hold,
        exported_snapshot(endpoints.source_url, SNAPSHOT_SECONDS) as snapshot,
        connect(endpoints.source_url) as connection,
    ):
        enter(connection, snapshot.name)
        tell("waiting for the cut at the snapshot")
        row = _cut_at(config, endpoints, hold, snapshot.lsn, timeout)
        verdicts = list(_compare_all(connection, config, row, tell))
    seconds = time.monotonic() - started
    return Report(cut=row.cut, lsn=snapshot.lsn, seconds=seconds, tables=tuple(verdicts))


def _compare_all(
    connection: Connection, config: Config, row: LedgerRow, tell: Callable[[str], None]
) -> Iterator[TableVerdict]:
    known = [TableId.parse(entry.table) for entry in row.tables]
    for table in captured_tables(connection, config, known):
        tell(f"comparing {table.table}")
        yield compare_table(connection, table, row.entry(str(table.table)), _scratch(config))


def _scratch(config: Config) -> Path:
    folder = config.state_dir / "scratch"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _hold(config: Config) -> Iterator[str]:
    """Keep the job from publishing a cut beyond a snapshot that is not taken yet."""
    folder = requests.directory(config.state_dir)
    now = time.time()
    requests.remove_expired(folder, now)
    request_id, expires_at = uuid.uuid4().hex, now + SNAPSHOT_SECONDS + MARGIN_SECONDS
    requests.write(folder, Request(id=request_id, expires_at=expires_at))
    try:
        yield request_id
    finally:
        requests.remove(folder, request_id)


def enter(connection: Connection, snapshot: str) -> None:
    """Read from now on as of the exported snapshot, and print as ``render`` expects."""
    connection.rollback()
    connection.autocommit = False
    connection.isolation_level = IsolationLevel.REPEATABLE_READ
    connection.read_only = True
    connection.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(snapshot))
    for name, value in SETTINGS.items():
        connection.execute("SELECT set_config(%s, %s, true)", (name, value))


def _cut_at(config: Config, endpoints: Endpoints, hold: str, lsn: int, timeout: float) -> LedgerRow:
    """Ask for the cut at the LSN and wait for it; let the job go on as soon as it is there."""
    folder = requests.directory(config.state_dir)
    ledger = Ledger(ledger_path(config))
    last = ledger.last()
    requests.write(folder, Request(id=hold, expires_at=time.time() + timeout, bound=lsn))
    with connect(endpoints.source_url) as connection:
        # A commit beyond the snapshot: by it the job knows that nothing before it is on its way.
        barrier.touch(connection, hold)
    row = wait_for_cut(
        ledger,
        lambda row: row.request == hold,
        after=last.cut if last else 0,
        timeout=timeout,
    )
    requests.remove(folder, hold)
    if row is None:
        raise CdcError(
            ErrorKind.TIMEOUT,
            f"the job published no cut at the snapshot within {timeout:g} s",
            detail=where_it_hangs(config),
            remedy="wal2lake status; give it longer with --timeout",
        )
    if row.lsn is not None and row.lsn > lsn:
        raise CdcError(
            ErrorKind.INTERNAL,
            f"cut {row.cut} was given for a snapshot that it is beyond",
            remedy="run wal2lake verify again; this process may have been suspended",
        )
    return row
