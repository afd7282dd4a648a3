"""Which rows of the source are readable in an installation's lake."""

import time
from collections.abc import Iterable, Mapping
from typing import Final

from deltalake import DeltaTable

from bench.whole.installation import Installation
from bench.whole.tables import SCHEMA, names
from cdc.waiting import poll, until

_EVERY_SECONDS: Final = 0.5


def readable_rows(one: Installation, tables: list[str]) -> int:
    """Return the rows of the tables at the newest cut, from their statistics.

    The rows of tables that nobody has changed yet: deleted ones are not subtracted.
    """
    return _readable(one, [f"{SCHEMA}.{name}" for name in tables])


def _readable(one: Installation, tables: Iterable[str]) -> int:
    cut = one.last_cut()
    if cut is None or cut.lsn is None:
        return 0
    entries = filter(None, map(cut.entry, tables))
    return sum(_rows(entry.path, entry.version) for entry in entries)


def await_all(one: Installation, *, tables: int, rows: int, seconds: float) -> None:
    """Wait until the first snapshot is readable; raises TIMEOUT."""
    wanted, listed = tables * rows, names(tables)
    until(lambda: readable_rows(one, listed) >= wanted, seconds, "the snapshot was not readable")


def await_rows(one: Installation, rows: Mapping[str, int], seconds: float) -> None:
    """Wait until tables that nobody changes have so many rows together; raises TIMEOUT."""
    until(lambda: _readable(one, rows) >= sum(rows.values()), seconds, "the snapshot was not there")


def rate_of_snapshot(
    one: Installation, *, tables: int, rows: int, began: float, seconds: float
) -> tuple[float, int, float]:
    """Wait for the first snapshot of tables with so many rows each, so many seconds from now on.

    Return rows per second from ``began``, in seconds since 1970, until they were published; how
    many they were; and these seconds.
    """
    found, wanted, listed = 0, tables * rows, names(tables)

    def all_readable() -> bool:
        nonlocal found
        found = max(found, readable_rows(one, listed))
        return found >= wanted

    complete = poll(all_readable, bool, every=_EVERY_SECONDS, seconds=seconds)
    cut = one.last_cut()
    ended = cut.published_at.timestamp() if complete and cut is not None else time.time()
    took = max(ended - began, 0.001)
    return found / took, found, took


def _rows(path: str, version: int) -> int:
    opened = DeltaTable(path, version=version)
    return sum(opened.get_add_actions()["num_records"].to_pylist())
