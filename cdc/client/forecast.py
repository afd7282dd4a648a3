"""Forecast an operation (``--dry-run``): what it reads, how long it takes, whether there is room.

Rows are the source's own estimates; the time is based on the last operation of the same kind. A
value that cannot be estimated is None, with a reason. Nothing is read and nothing is changed.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cdc.client.check import LITTLE_BYTES
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import is_local
from cdc.source.catalog.relations import Size, size_of
from cdc.source.predicate.postgres_check import estimated_rows
from cdc.source.predicate.predicate import Predicate
from cdc.source.server.connection import Connection, translated
from cdc.source.server.slot import slot_state
from cdc.state.operation import OperationState
from cdc.tables import TableId

ROOM: Final = 2
"""Factor on the bytes read: the rows are in the lake twice until the old files are vacuumed."""

_LIMIT: Final = """
SELECT CASE WHEN setting = '-1' THEN NULL ELSE setting::bigint * 1024 * 1024 END
  FROM pg_settings WHERE name = 'max_slot_wal_keep_size'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableForecast:
    """Forecasts one table; its numbers are None if the source has no statistics about it yet."""

    table: str
    rows: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRoom:
    """Says how much room there is for the WAL that the slot retains while the job is held."""

    name: str
    retained_bytes: int | None
    safe_bytes: int | None  # left before the limit; None without a limit
    limit_bytes: int | None  # max_slot_wal_keep_size; None without a limit


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRoom:
    """Says how much space is free on a local disk, and how much is needed."""

    place: str  # the configuration key
    path: str
    free_bytes: int
    needed_bytes: int | None  # None if the size of a table is not known

    @property
    def is_enough(self) -> bool:
        """Return whether the disk has enough free space, with a reserve."""
        return self.free_bytes >= max(LITTLE_BYTES, self.needed_bytes or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Forecasts what one operation takes for all its tables."""

    command: str
    tables: tuple[TableForecast, ...]
    where: str  # the predicate as it was parsed
    slot: SlotRoom | None
    disks: tuple[DiskRoom, ...]
    seconds: float | None
    basis: str  # what the seconds are based on, or why they are unknown

    @property
    def rows(self) -> int | None:
        """Return the rows of all tables; None if those of one are not known."""
        return total(table.rows for table in self.tables)

    @property
    def bytes(self) -> int | None:
        """Return the bytes of all tables; None if those of one are not known."""
        return total(table.bytes for table in self.tables)


def forecast(
    config: Config,
    connection: Connection,
    command: str,
    tables: Sequence[TableId],
    *,
    past: Sequence[Mapping[str, Any]],
    predicate: Predicate | None = None,
) -> Forecast:
    """Return what the command would read; ``past`` has the rows of ``wal2lake.operations``.

    Raises CONFIG when Postgres rejects the predicate, and the errors of a source that cannot be
    reached.
    """
    estimates = tuple(_table(connection, table, predicate) for table in tables)
    size = total(table.bytes for table in estimates)
    seconds, basis = duration(command, total(table.rows for table in estimates), past)
    return Forecast(
        command=command,
        tables=estimates,
        where=predicate.text if predicate else "",
        slot=_slot(connection, config.name),
        disks=tuple(_disks(config, size)),
        seconds=seconds,
        basis=basis,
    )


def refuse_full(expected: Forecast) -> None:
    """Raise DISK_FULL when the lake's disk has too little free space for what would be read."""
    for disk in expected.disks:
        if disk.place == "lake.path" and not disk.is_enough:
            needed = max(LITTLE_BYTES, disk.needed_bytes or 0)
            raise CdcError(
                ErrorKind.DISK_FULL,
                f"the disk of the lake has too little free space for this {expected.command}",
                detail=f"{disk.free_bytes:,} bytes are free at {disk.path}, {needed:,} are needed",
                remedy="free some space, or name fewer tables at a time",
            )


def total(numbers: Iterable[int | None]) -> int | None:
    """Return the sum; None if one of the numbers is not known."""
    result = 0
    for number in numbers:
        if number is None:
            return None
        result += number
    return result


def duration(
    command: str, rows: int | None, past: Sequence[Mapping[str, Any]]
) -> tuple[float | None, str]:
    """Return the seconds at the rate of the command's last successful run, and their basis.

    ``past`` is oldest first. The seconds are None if they cannot be estimated; the basis says why.
    """
    for run in reversed(past):
        read, seconds = run["rows_read"] or 0, run["seconds"] or 0.0
        if run["command"] != command or run["state"] != OperationState.DONE.value:
            continue
        if not (read and seconds):
            continue
        if rows is None:
            return None, "unknown: the source has no statistics on the tables (run ANALYZE)"
        return rows * seconds / read, f"{read / seconds:,.0f} rows/s in {run['id']}"
    return None, "unknown: no earlier run"


def _table(connection: Connection, table: TableId, predicate: Predicate | None) -> TableForecast:
    size = size_of(connection, table)
    if predicate is None:
        return TableForecast(table=str(table), rows=size.rows, bytes=size.bytes)
    rows = estimated_rows(connection, table, predicate)
    return TableForecast(table=str(table), rows=rows, bytes=_share(size, rows))


def _share(size: Size, rows: int | None) -> int | None:
    """Return the same share of the bytes as of the rows; all bytes if the share is not known."""
    if rows is None or size.bytes is None or not size.rows:
        return size.bytes
    return round(size.bytes * min(1.0, rows / size.rows))


def _slot(connection: Connection, name: str) -> SlotRoom | None:
    state = slot_state(connection, name)
    if state is None:
        return None
    with translated("reading max_slot_wal_keep_size"):
        row = connection.execute(_LIMIT).fetchone()
    return SlotRoom(
        name=name,
        retained_bytes=state.retained_bytes,
        safe_bytes=state.safe_bytes,
        limit_bytes=int(row[0]) if row and row[0] is not None else None,
    )


def _disks(config: Config, size: int | None) -> Iterator[DiskRoom]:
    """Yield the disks of lake and state directory; only the lake's gets the rows that are read."""
    needed = None if size is None else ROOM * size
    if is_local(config.lake.path):
        yield _disk("lake.path", Path(config.lake.path), needed)
    yield _disk("state_dir", config.state_dir, 0)


def _disk(place: str, path: Path, needed: int | None) -> DiskRoom:
    existing = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
    free = shutil.disk_usage(existing).free
    return DiskRoom(place=place, path=str(path), free_bytes=free, needed_bytes=needed)
