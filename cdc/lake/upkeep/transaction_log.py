"""Old versions of a table: which of its commits are kept, and that readers may open them.

Delta, in Spark and in delta-rs, goes by the age of commits alone. A table that rests for longer
than the retention and is then written to may lose the version that was its newest all that time,
and with it every cut that names it. So a log on a local disk is cleaned here, and not by Delta
(cdc/lake/upkeep/maintenance.py).
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import takewhile
from pathlib import Path
from typing import Final

from cdc.failpoints import Failpoint, reach

AGE_LIMIT: Final = (
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
)
"""Spark's setting by which Delta refuses a version that is not the newest, and was made before the
retention: also one that was the newest a moment ago, and of which every file is there."""
_DIGITS: Final = 20
_COMMIT: Final = ".json"
_CHECKPOINT: Final = ".checkpoint.parquet"


def clean(path: str, retention_seconds: float) -> None:
    """Remove the files of versions that nobody needs who opens one of within the retention.

    The oldest go first: what a process that dies leaves is a log that begins later.
    """
    folder = Path(path) / "_delta_log"
    gone = obsolete(_times(folder), time.time() - retention_seconds)
    reach(Failpoint.BEFORE_COMMIT_EXPIRY)
    for name in gone:
        (folder / name).unlink(missing_ok=True)
    reach(Failpoint.AFTER_COMMIT_EXPIRY)


def _times(folder: Path) -> dict[str, float]:
    found = {}
    for entry in os.scandir(folder):
        with suppress(FileNotFoundError):  # a temporary one
            found[entry.name] = entry.stat().st_mtime
    return found


def obsolete(files: Mapping[str, float], since: float) -> list[str]:
    """What may go of a log's files, given by name with their times; the oldest versions first.

    Without it every version can be opened that was the newest at ``since`` or later: it is what
    lies before the last checkpoint that the oldest of these can be made from.
    """
    numbered = sorted(_numbered(files))
    commits = [(version, files[name]) for version, name in numbered if name.endswith(_COMMIT)]
    old = takewhile(lambda commit: commit[1] <= since, commits)
    newest_then = max((version for version, _ in old), default=-1)
    checkpoints = (v for v, name in numbered if name == f"{v:0{_DIGITS}d}{_CHECKPOINT}")
    begins = max((version for version in checkpoints if version <= newest_then), default=0)
    return [name for version, name in numbered if version < begins]


def _numbered(names: Mapping[str, float]) -> Iterator[tuple[int, str]]:
    """With their versions, those that belong to one; ``.N.json.crc`` is Hadoop's checksum."""
    for name in names:
        number = name.removeprefix(".")[:_DIGITS]
        if number.isdecimal():
            yield int(number), name
