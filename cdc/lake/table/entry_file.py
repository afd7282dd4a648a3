"""Names the entries of a Delta table's log."""

import re
from collections.abc import Iterable
from typing import Final

LOG: Final = "_delta_log"
ENTRY: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\..*parquet")


def entry_name(version: int) -> str:
    """Return the path in the table of the log entry of a version."""
    return f"{LOG}/{version:020d}.json"


def versions_of(names: Iterable[str], form: re.Pattern[str]) -> set[int]:
    """Return the versions of the log's files whose names have this form."""
    return {int(found[1]) for name in names if (found := form.fullmatch(name))}


def first_gap(names: Iterable[str]) -> int | None:
    """Return the first version without an entry between a log's last checkpoint and its newest one.

    ``names`` are those of all files of the log. Returns None for a log without such a gap.
    """
    known = list(names)
    entries, begun = versions_of(known, ENTRY), versions_of(known, _CHECKPOINT)
    expected = range(max(begun, default=0), max(entries, default=-1) + 1)
    return next((version for version in expected if version not in entries), None)
