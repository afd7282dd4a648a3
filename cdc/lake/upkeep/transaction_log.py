"""Cleans a table's transaction log, keeping every version that a reader may still open.

Delta, in Spark and in delta-rs, only considers the age of commits. A table that is idle for longer
than the retention and is then written to could lose the version that was its newest all that time,
and with it every cut that refers to it. So a transaction log on a local disk is cleaned here and
not by Delta (cdc/lake/upkeep/maintenance.py).
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Final

from cdc.failpoints import Failpoint, reach
from cdc.lake.table.entry_file import LOG

AGE_LIMIT: Final = (
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
)
"""Spark setting that makes Delta refuse any version but the newest if it was created before the
retention, even if it was the newest a moment ago and all its files exist."""
_DIGITS: Final = 20
_COMMIT: Final = ".json"
_CHECKPOINT: Final = ".checkpoint.parquet"


def clean(path: str, retention_seconds: float) -> None:
    """Remove log files of the table at ``path`` that no version within the retention needs.

    The oldest go first: if the process dies, the remaining log just begins later.
    """
    folder = Path(path) / LOG
    names = obsolete(_times(folder), time.time() - retention_seconds)
    reach(Failpoint.BEFORE_COMMIT_EXPIRY)
    for name in names:
        (folder / name).unlink(missing_ok=True)
    reach(Failpoint.AFTER_COMMIT_EXPIRY)


def _times(folder: Path) -> dict[str, float]:
    times = {}
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):  # a temporary file
            times[entry.name] = entry.stat().st_mtime
    return times


def obsolete(files: Mapping[str, float], since: float) -> list[str]:
    """Return the names of log files that can be removed, the oldest versions first.

    ``files`` maps names to modification times. Every version that was the newest at ``since`` or
    later can be opened without the removed files: they lie before the last checkpoint from which
    the oldest of these versions can be read.
    """
    numbered = sorted(_numbered(files))
    commits = [(version, files[name]) for version, name in numbered if name.endswith(_COMMIT)]
    old = takewhile(lambda commit: commit[1] <= since, commits)
    newest_then = max((version for version, _ in old), default=-1)
    checkpoints = (v for v, name in numbered if name == f"{v:0{_DIGITS}d}{_CHECKPOINT}")
    begins = max((version for version in checkpoints if version <= newest_then), default=0)
    return [name for version, name in numbered if version < begins]


def _numbered(names: Mapping[str, float]) -> Iterator[tuple[int, str]]:
    """Yield version and name of files that belong to a version, with Hadoop's ``.N.json.crc``."""
    for name in names:
        number = name.removeprefix(".")[:_DIGITS]
        if number.isdecimal():
            yield int(number), name
