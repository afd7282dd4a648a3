"""Names the entries of a Delta table's log."""

import re
from collections.abc import Collection, Iterable
from typing import Final

LOG: Final = "_delta_log"
ENTRY: Final = re.compile(r"(\d{20})\.json")
CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\..+")
"""Of any form: one file, several, or with sidecars."""


def entry_name(version: int) -> str:
    """Return the path in the table of the log entry of a version."""
    return f"{LOG}/{version:020d}.json"


def versions_of(names: Iterable[str], form: re.Pattern[str]) -> set[int]:
    """Return the versions of the log's files whose names have this form."""
    return {int(found[1]) for name in names if (found := form.fullmatch(name))}


def first_gap(entries: Collection[int], begin: int) -> int | None:
    """Return the first version from ``begin`` to the newest entry that has none; None if all have.

    ``begin`` is the version of the log's last checkpoint, or 0.
    """
    expected = range(begin, max(entries, default=-1) + 1)
    return next((version for version in expected if version not in entries), None)
