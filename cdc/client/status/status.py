"""Collect position and lag of every table and the state of every component.

Components that do not answer only leave gaps: everything else is still reported.
"""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, TypeVar

from cdc.client.status import components
from cdc.client.status.components import ConnectorPart, JobPart, ServerPart, SourcePart, UpPart
from cdc.client.status.lag import lags
from cdc.config import Config
from cdc.derive.late_rows.lateness import Lateness, lateness_at
from cdc.errors import CdcError
from cdc.lake.layout import epochs_path, ledger_path
from cdc.lake.records import epochs
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import Ledger, LedgerRow, TableEntry
from cdc.stack.process.log_files import last_crash
from cdc.state import health, monitor_address, pace
from cdc.state import operation_files as files
from cdc.state.directory import StateDir
from cdc.state.endpoints import configured_source_url
from cdc.state.health import Health
from cdc.state.operation import Operation
from cdc.state.pace import Pace
from cdc.state.pipeline import Pipeline, resolve
from cdc.tables import TableId

T = TypeVar("T")
OPERATIONS: Final = ("inserts", "updates", "deletes", "reads", "truncates")
"""The counts of events that the ledger keeps of each table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """Describes one table at the newest cut. A lag is None if it cannot be determined now."""

    table: str
    state: str
    reason: str
    rows_applied: int
    refused: int
    offset: int
    lag_offsets: int | None
    lag_bytes: int | None
    lag_seconds: float | None
    events: Mapping[str, int] = field(default_factory=dict)
    """Events applied since the table was created, by operation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationStatus:
    """Describes an operation that has not ended."""

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
    """Describes the whole pipeline at one moment."""

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
    health: Health | None = None  # what the job's health watch saw last
    pace: Pace | None = None  # of the running job
    disk: str = ""  # a message if the disk of the state directory is nearly full
    monitor: str = ""  # the URL of the running job's pages for monitoring
    derived: tuple[DerivedEntry, ...] = field(default=())
    lateness: Mapping[str, Lateness] = field(default_factory=dict)
    """Of the derived tables that have a rule for late rows."""
    crash: str = ""
    """The last crash of a supervisor, and the file that describes it; empty without a crash."""


def status(config: Config) -> Status:
    """Return the pipeline's status; ``unreachable`` names the components that do not answer."""
    silent: list[str] = []
    row = _ask(silent, Ledger(ledger_path(config)).last)
    pipeline = _ask(silent, lambda: resolve(config))
    source, connector, lag_offsets = (
        _servers_of(pipeline, row, silent)
        if pipeline
        else (_configured_source(config, silent), None, None)
    )
    job, wal = components.job(config.state_dir), _wal_beyond(config, row, source)
    return Status(
        cut=row.cut if row else None,
        lsn=row.lsn if row else None,
        published_at=row.published_at if row else None,
        tables=tuple(
            _table(entry, row, source, (lag_offsets or {}).get(_topic(config, entry)), wal)
            for entry in row.tables
        )
        if row
        else (),
        derived=row.derived if row else (),
        lateness=_ask(silent, lambda: lateness_at(row) if row else {}) or {},
        source=source,
        connector=connector,
        job=job,
        servers=tuple(components.servers(config.state_dir)),
        unreachable=tuple(silent),
        operations=tuple(
            _operation(config, operation, job) for operation in files.unfinished(config.state_dir)
        ),
        up=components.up(config.state_dir),
        health=health.read(config.state_dir, time.monotonic()),
        pace=_pace(config, job),
        disk=components.disk(config.state_dir),
        monitor=monitor_address.read(config.state_dir, job.pid) if job.alive else "",
        crash=last_crash(StateDir(config.state_dir)),
    )


def _pace(config: Config, job: JobPart) -> Pace | None:
    """Return the pace of the running job; a file of an earlier one says nothing."""
    found = pace.read(config.state_dir, time.monotonic())
    return found if found is not None and job.alive and found.pid == job.pid else None


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


def _configured_source(config: Config, silent: list[str]) -> SourcePart | None:
    """Ask the source where the other addresses are not known; None for an embedded one."""
    url = configured_source_url(config.source)
    return _ask(silent, lambda: components.source(url, config.name)) if url else None


def _servers_of(
    pipeline: Pipeline, row: LedgerRow | None, silent: list[str]
) -> tuple[SourcePart | None, ConnectorPart | None, dict[str, int] | None]:
    endpoints = pipeline.endpoints
    applied = {_topic(pipeline.config, entry): entry.offset for entry in row.tables} if row else {}
    # In parallel, because each may use up its whole timeout.
    with ThreadPoolExecutor(3) as pool:
        source = pool.submit(
            _ask, silent, lambda: components.source(endpoints.source_url, pipeline.name)
        )
        worker = pool.submit(
            _ask, silent, lambda: components.connector(endpoints.connect, pipeline.name)
        )
        lag_offsets = pool.submit(_ask, silent, lambda: lags(endpoints.kafka, applied))
    return source.result(), worker.result(), lag_offsets.result()


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
        events={name: getattr(entry, name) for name in OPERATIONS},
    )


def _wal_beyond(config: Config, row: LedgerRow | None, source: SourcePart | None) -> int | None:
    """Return the bytes of WAL after the cut; None (unknown) if the cut is of an earlier epoch."""
    if source is None or row is None or row.lsn is None:
        return None
    if not row.reaches(0, epochs.number(epochs.last(epochs_path(config)))):
        return None
    return max(0, source.current_lsn - row.lsn)


def _seconds(row: LedgerRow, source: SourcePart | None, offsets: int | None) -> float | None:
    """Return the age of the newest commit in the cut, or 0 when nothing is left to apply.

    Nothing is left only if Kafka has no more changes and the connector is reading the slot;
    otherwise changes may wait in the source that Kafka does not have yet.
    """
    if offsets == 0 and source is not None and source.slot_active:
        return 0.0
    if row.committed_at is None:
        return None
    return max(0.0, (datetime.now(UTC) - row.committed_at).total_seconds())
