"""OPTIMIZE and VACUUM by the job itself, as often as it can, and Delta's own record of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from deltalake import DeltaTable

from tests.faults.bank.armed import Armed
from tests.waiting import until

GROWING: Final = ("accounts", "debits", "credits", "audit", "counters", "flicker", "visits")
"""Tables whose every few commits leave more than one file."""
OFTEN: Final = {
    "maintain_every_commits": 2,
    "optimize_small_files": 2,
    "vacuum_every_hours": 1e-6,
}
DONE: Final = {"OPTIMIZE", "VACUUM END"}
MAINTENANCE_SECONDS: Final = 600


@contextmanager
def maintained(bank: Armed) -> Iterator[None]:
    """Begins when the block does; ends when each table was optimized and vacuumed since."""
    began = {table: _opened(bank, table).version() for table in GROWING}
    with _often(bank):
        yield
        until(lambda: not _unmaintained(bank, began), MAINTENANCE_SECONDS)
    bank.crash("job")


@contextmanager
def _often(bank: Armed) -> Iterator[None]:
    """A job that begins now goes by it, and one that begins after the block does not."""
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
    """Of the commits after that version."""
    opened = _opened(bank, table)
    newer = opened.history(limit=opened.version() - since) if opened.version() > since else []
    return {str(commit.get("operation")) for commit in newer if commit["version"] > since}


def _opened(bank: Armed, table: str) -> DeltaTable:
    return DeltaTable(str(bank.folder / "lake" / "bank" / table))
