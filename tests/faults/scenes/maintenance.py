"""Make the job run OPTIMIZE and look for stray files as often as it can, and check that it does."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from deltalake import DeltaTable

from tests.faults.bank.armed import Armed
from tests.waiting import until

GROWING: Final = ("accounts", "debits", "credits", "audit", "counters", "flicker", "visits")
"""Tables that have more than one file after every few commits."""
OFTEN: Final = {
    # The small files of batches that the driver applies are combined without Spark's OPTIMIZE.
    "local_events": 0,
    "maintain_every_commits": 2,
    "optimize_small_files": 2,
    "vacuum_every_hours": 1e-6,
}
MAINTENANCE_SECONDS: Final = 600


@contextmanager
def maintained(bank: Armed) -> Iterator[None]:
    """Maintain often during the block; wait until every table was optimized and has no stray."""
    began = {table: _opened(bank, table).version() for table in GROWING}
    with _often(bank):
        strays = [plant_stray(_path(bank, table)) for table in GROWING]
        yield
        until(lambda: not _unmaintained(bank, began), MAINTENANCE_SECONDS)
        until(lambda: not any(file.exists() for file in strays), MAINTENANCE_SECONDS)
    bank.crash("job")


@contextmanager
def _often(bank: Armed) -> Iterator[None]:
    """Restart the job with frequent maintenance; restore the configuration after the block."""
    before: dict[str, Any] = {}

    def often(written: dict[str, Any]) -> None:
        before.update(written["job"])
        written["job"].update(OFTEN)

    bank.configure(often)
    try:
        bank.crash("job")
        yield
    finally:
        bank.configure(lambda written: written.update(job=before))


def _unmaintained(bank: Armed, began: dict[str, int]) -> list[str]:
    return [t for t, since in began.items() if "OPTIMIZE" not in _operations(bank, t, since)]


def _operations(bank: Armed, table: str, since: int) -> set[str]:
    """Return the operations of the table's commits after version ``since``."""
    opened = _opened(bank, table)
    newer = opened.history(limit=opened.version() - since) if opened.version() > since else []
    return {str(commit.get("operation")) for commit in newer if commit["version"] > since}


def _opened(bank: Armed, table: str) -> DeltaTable:
    return DeltaTable(str(_path(bank, table)))


def _path(bank: Armed, table: str) -> Path:
    return bank.folder / "lake" / "bank" / table


def plant_stray(table: Path) -> Path:
    """Write a file of two months ago into a table's folder that is in no version; return it."""
    file = table / f"stray-{uuid4()}.parquet"
    file.write_bytes(b"x")
    then = time.time() - 60 * 24 * 3600
    os.utime(file, (then, then))
    return file
