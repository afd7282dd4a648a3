"""What an operation will read, how long it may take and whether there is room: ``--dry-run``.

Rows are the source's own estimates, time is that of the last operation of the same kind; what
cannot be told is None and has a reason. Nothing is read and nothing is changed.
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
from cdc.source.predicate.check import checked
from cdc.source.predicate.predicate import Predicate
from cdc.source.server.connection import Connection, translated
from cdc.source.server.slot import slot_state
from cdc.state.operation import OperationState
from cdc.tables import TableId

ROOM: Final = 2
"""Times what is read: the rows lie in the lake twice until the old files are vacuumed."""

_LIMIT: Final = """
SELECT CASE WHEN setting = '-1' THEN NULL ELSE setting::bigint * 1024 * 1024 END
  FROM pg_settings WHERE name = 'max_slot_wal_keep_size'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableForecast:
    """One table; None where the source has no statistics of it yet."""

    table: str
    rows: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRoom:
    """WAL waits for the slot while the job is held. ``safe_bytes`` is None without a limit."""

    name: str
    retained_bytes: int | None
    safe_bytes: int | None
    limit_bytes: int | None  # max_slot_wal_keep_size


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRoom:
    """A local disk. ``needed_bytes`` is None where the size of a table is not known."""

    place: str  # the key of the configuration
    path: str
    free_bytes: int
    needed_bytes: int | None

    @property
    def is_enough(self) -> bool:
        return self.free_bytes >= max(LITTLE_BYTES, self.needed_bytes or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """All tables of one operation."""

    command: str
    tables: tuple[TableForecast, ...]
    where: str  # the predicate, as it was read
    slot: SlotRoom | None
    disks: tuple[DiskRoom, ...]
    seconds: float | None
    basis: str  # of the seconds, or why there are none

    @property
    def rows(self) -> int | None:
        """Of all tables; None when those of one are not known."""
        return total(table.rows for table in self.tables)

    @property
    def bytes(self) -> int | None:
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
    """What the command would do to the tables; ``past`` has the rows of ``operations``.

    Raises CONFIG when Postgres refuses the predicate, and what a source that is gone raises.
    """
    found = tuple(_table(connection, table, predicate) for table in tables)
    size = total(table.bytes for table in found)
    seconds, basis = duration(command, total(table.rows for table in found), past)
    return Forecast(
        command=command,
        tables=found,
        where=predicate.text if predicate else "",
        slot=_slot(connection, config.name),
        disks=tuple(_disks(config, size)),
        seconds=seconds,
        basis=basis,
    )


def refuse_full(found: Forecast) -> None:
    """Raises DISK_FULL when the lake's disk has too little room for what would be read."""
    for disk in found.disks:
        if disk.place == "lake.path" and not disk.is_enough:
            needed = max(LITTLE_BYTES, disk.needed_bytes or 0)
            raise CdcError(
                ErrorKind.DISK_FULL,
                f"the disk of the lake has too little room for this {found.command}",
                detail=f"{disk.free_bytes:,} bytes are free at {disk.path}, {needed:,} are needed",
                remedy="free some space, or name fewer tables at a time",
            )


def total(numbers: Iterable[int | None]) -> int | None:
    """The sum; None when one of them is not known."""
    found = 0
    for number in numbers:
        if number is None:
            return None
        found += number
    return found


def duration(
    command: str, rows: int | None, past: Sequence[Mapping[str, Any]]
) -> tuple[float | None, str]:
    """Seconds at the rate of the newest run of the command that ended well, and where from."""
    for run in reversed(past):
        read, seconds = run["rows_read"] or 0, run["seconds"] or 0.0
        if run["command"] != command or run["state"] != OperationState.DONE.value:
            continue
        if not (read and seconds):
            continue
        if rows is None:
            return None, "unknown: the source has no statistics of the tables (ANALYZE makes them)"
        return rows * seconds / read, f"{read / seconds:,.0f} rows/s in {run['id']}"
    return None, "unknown: no earlier run"


def _table(connection: Connection, table: TableId, predicate: Predicate | None) -> TableForecast:
    size = size_of(connection, table)
    if predicate is None:
        return TableForecast(table=str(table), rows=size.rows, bytes=size.bytes)
    rows = checked(connection, table, predicate)
    return TableForecast(table=str(table), rows=rows, bytes=_share(size, rows))


def _share(size: Size, rows: int | None) -> int | None:
    """Of the bytes, as many as of the rows; all of them where that is not known."""
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
    """The lake gets the rows; what is in the way there stays small in the state directory."""
    needed = None if size is None else ROOM * size
    if is_local(config.lake.path):
        yield _disk("lake.path", Path(config.lake.path), needed)
    yield _disk("state_dir", config.state_dir, 0)


def _disk(place: str, path: Path, needed: int | None) -> DiskRoom:
    existing = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
    free = shutil.disk_usage(existing).free
    return DiskRoom(place=place, path=str(path), free_bytes=free, needed_bytes=needed)
