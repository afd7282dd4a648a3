"""Names the entries of a Delta table's log."""

from typing import Final

LOG: Final = "_delta_log"


def entry_name(version: int) -> str:
    """Return the path in the table of the log entry of a version."""
    return f"{LOG}/{version:020d}.json"
