"""Names the entries of a Delta table's log, and tells a file from another of the same name."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOG: Final = "_delta_log"


@dataclass(frozen=True, slots=True)
class EntryFile:
    """The file of an entry: a table that was copied or restored has others."""

    inode: int
    modified: int  # nanoseconds
    size: int


def entry_name(version: int) -> str:
    """Return the path in the table of the log entry of a version."""
    return f"{LOG}/{version:020d}.json"


def entry_file(table: Path, version: int) -> EntryFile | None:
    """Return the file of a version's entry; None if there is none. Raises OSError."""
    try:
        found = (table / entry_name(version)).stat()
    except FileNotFoundError:
        return None
    return EntryFile(found.st_ino, found.st_mtime_ns, found.st_size)
