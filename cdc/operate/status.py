"""How far every table is and how far behind; what can be told is told, also with parts down."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from cdc.config import Config
from cdc.errors import CdcError
from cdc.lake import epochs
from cdc.lake.layout import epochs_path, ledger_path
from cdc.lake.ledger import Ledger, LedgerRow, TableEntry
from cdc.operate import health, parts
from cdc.operate import operation_files as files
from cdc.operate.health import Health
from cdc.operate.lag import lags
from cdc.operate.operation import Operation
from cdc.operate.parts import ConnectorPart, JobPart, ServerPart, SourcePart, UpPart
from cdc.stack.endpoints import Endpoints, configured_source_url, resolve
from cdc.stack.log_files import last_crash
from cdc.stack.state import StateDir
from cdc.tables import TableId

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """One table at the newest cut. A lag is None where it cannot be known now."""

    table: str
    state: str
    reason: str
    rows_applied: int
    refused: int
    offset: int
    lag_offsets: int | None
    lag_bytes: int | None
    lag_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationStatus:
    """An operation that has not ended."""

    id: str
    command: str
    tables: tuple[str, ...]
    state: str
    phase: str
    table: str
    rows: int
    rows_expected: int | None
    eta_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The pipeline at one moment."""

    cut: int | None
    lsn: int | None
    published_at: datetime | None
    tables: tuple[TableStatus, ...]
    source: SourcePart | None
    connector: ConnectorPart | None
    job: JobPart
    servers: tuple[ServerPart, ...]
    unreachable: tuple[str, ...] = field(default=())
    operations: tuple[OperationStatus, ...] = field(default=())
    up: UpPart | None = None
    health: Health | None = None  # as the job's own watch saw it last
    disk: str = ""  # where there is too little room
    crash: str = ""
    """The last crash of a supervisor, and where it is told; empty where none has."""


def status(config: Config) -> Status:
    """Ask every part; one that does not answer is named in ``unreachable``."""
    silent: list[str] = []
    row = _ask(silent, Ledger(ledger_path(config)).last)
    endpoints = _ask(silent, lambda: resolve(config))
    source, connector, behind = _servers_of(config, endpoints, row, silent)
    job, wal = parts.job(config.state_dir), _wal_beyond(config, row, source)
    return Status(
        cut=row.cut if row else None,
        lsn=row.lsn if row else None,
        published_at=row.published_at if row else None,
        tables=tuple(
            _table(entry, row, source, (behind or {}).get(_topic(config, entry)), wal)
            for entry in row.tables
        )
        if row
        else (),
        source=source,
        connector=connector,
        job=job,
        servers=tuple(parts.servers(config.state_dir)),
        unreachable=tuple(silent),
        operations=tuple(_operation(config, each, job) for each in files.asked(config.state_dir)),
        up=parts.up(config.state_dir),
        health=health.read(config.state_dir, time.monotonic()),
        disk=parts.disk(config.state_dir),
        crash=last_crash(StateDir(config.state_dir)),
    )


def _operation(config: Config, operation: Operation, job: JobPart) -> OperationStatus:
    progress = files.progress(config.state_dir, operation.id)
    return OperationStatus(
        id=operation.id,
        command=operation.command,
        tables=operation.tables,
        state=progress.state.value,
        phase=progress.phase,
        table=progress.table,
        rows=progress.rows,
        rows_expected=progress.rows_expected,
        eta_seconds=progress.eta_seconds if job.alive else None,
    )


def _ask(silent: list[str], question: Callable[[], T]) -> T | None:
    try:
        return question()
    except CdcError as error:
        silent.append(f"{error.message}; {error.detail}" if error.detail else error.message)
        return None


def _servers_of(
    config: Config, endpoints: Endpoints | None, row: LedgerRow | None, silent: list[str]
) -> tuple[SourcePart | None, ConnectorPart | None, dict[str, int] | None]:
    if endpoints is None:
        url = configured_source_url(config.source)
        only = _ask(silent, lambda: parts.source(url, config.name)) if url else None
        return only, None, None
    applied = {_topic(config, entry): entry.offset for entry in row.tables} if row else {}
    # At the same time: each may take all of its time not to answer.
    with ThreadPoolExecutor(3) as pool:
        source = pool.submit(_ask, silent, lambda: parts.source(endpoints.source_url, config.name))
        worker = pool.submit(_ask, silent, lambda: parts.connector(endpoints.connect, config.name))
        behind = pool.submit(_ask, silent, lambda: lags(endpoints.kafka, applied))
    return source.result(), worker.result(), behind.result()


def _topic(config: Config, entry: TableEntry) -> str:
    return TableId.parse(entry.table).topic(config.name)


def _table(
    entry: TableEntry,
    row: LedgerRow,
    source: SourcePart | None,
    offsets: int | None,
    wal: int | None,
) -> TableStatus:
    return TableStatus(
        table=entry.table,
        state=entry.state,
        reason=entry.reason,
        rows_applied=entry.rows_applied,
        refused=entry.refused,
        offset=entry.offset,
        lag_offsets=offsets,
        lag_bytes=wal,
        lag_seconds=_seconds(row, source, offsets),
    )


def _wal_beyond(config: Config, row: LedgerRow | None, source: SourcePart | None) -> int | None:
    """Bytes of WAL beyond the cut; unknown where the cut is of an earlier epoch."""
    if source is None or row is None or row.lsn is None:
        return None
    if not row.reaches(0, epochs.number(epochs.last(epochs_path(config)))):
        return None
    return max(0, source.current_lsn - row.lsn)


def _seconds(row: LedgerRow, source: SourcePart | None, offsets: int | None) -> float | None:
    """Age of the newest commit inside, but 0 when nothing is left to apply.

    Nothing is left only where Kafka says so and the connector is reading the slot: otherwise
    changes may wait in the source that Kafka does not know of.
    """
    if offsets == 0 and source is not None and source.slot_active:
        return 0.0
    if row.committed_at is None:
        return None
    return max(0.0, (datetime.now(UTC) - row.committed_at).total_seconds())
