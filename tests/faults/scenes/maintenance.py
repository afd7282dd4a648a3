"""Make the job run OPTIMIZE and VACUUM as often as it can, and check them in Delta's history."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

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
DONE: Final = {"OPTIMIZE", "VACUUM END"}
MAINTENANCE_SECONDS: Final = 600


@contextmanager
def maintained(bank: Armed) -> Iterator[None]:
    """Maintain often during the block; wait until every table was optimized and vacuumed."""
    began = {table: _opened(bank, table).version() for table in GROWING}
    with _often(bank):
        yield
        until(lambda: not _unmaintained(bank, began), MAINTENANCE_SECONDS)
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
    return [table for table, since in began.items() if not _operations(bank, table, since) >= DONE]


def _operations(bank: Armed, table: str, since: int) -> set[str]:
    """Return the operations of the table's commits after version ``since``."""
    opened = _opened(bank, table)
    newer = opened.history(limit=opened.version() - since) if opened.version() > since else []
    return {str(commit.get("operation")) for commit in newer if commit["version"] > since}


def _opened(bank: Armed, table: str) -> DeltaTable:
    return DeltaTable(str(bank.folder / "lake" / "bank" / table))
