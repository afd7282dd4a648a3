"""Decides which files of a table's transaction log no version may need.

Delta, in Spark and in delta-rs, only considers the age of commits. A table that is idle for longer
than the retention and is then written to could lose the version that was its newest all that time,
and with it every cut that refers to it. So a transaction log is cleaned by the job and not by Delta
(cdc/lake/upkeep/old_versions.py).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

AGE_LIMIT: Final = (
    "spark.databricks.delta.vacuum.enforceTimeTravelWithinDeletedFileRetentionDuration"
)
"""Spark setting that makes Delta refuse any version but the newest if it was created before the
retention, even if it was the newest a moment ago and all its files exist."""
_DIGITS: Final = 20
_COMMIT: Final = ".json"
_CHECKPOINT: Final = ".checkpoint.parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Says which versions a reader may still open, and which entries of the log have expired."""

    oldest: int  # the newest version at that time; -1 if there was none
    newest: int  # -1 if the log has no commit
    checkpoint: int | None  # the last one of one file, up to ``oldest``
    expired: tuple[int, ...]  # versions up to ``oldest`` that the log still has, in order


def kept(files: Mapping[str, float], since: float) -> Kept:
    """Return which versions were the newest at ``since`` or later.

    ``files`` maps names of log files to modification times. Where an entry is older than the one
    before it, as in a copied lake, it and all later ones are kept.
    """
    numbered = sorted(_numbered(files))
    commits = [(version, files[name]) for version, name in numbered if name.endswith(_COMMIT)]
    expired = tuple(version for version, _ in takewhile(lambda at: at[1] <= since, commits))
    oldest = max(expired, default=-1)
    checkpoints = (v for v, name in numbered if _is_checkpoint(v, name))
    return Kept(
        oldest=oldest,
        newest=max((version for version, _ in commits), default=-1),
        checkpoint=max((version for version in checkpoints if version <= oldest), default=None),
        expired=expired,
    )


def obsolete(files: Mapping[str, float], since: float) -> list[str]:
    """Return the names of log files that can be removed, the oldest versions first.

    ``files`` maps names to modification times. Every version that was the newest at ``since`` or
    later can be opened without the removed files: they lie before the last checkpoint from which
    the oldest of these versions can be read.
    """
    begins = kept(files, since).checkpoint or 0
    return [name for version, name in sorted(_numbered(files)) if version < begins]


def first_checkpoint(files: Iterable[str]) -> int | None:
    """Return the first version that can be opened in a log without its first entry.

    None if the log has that entry, or no checkpoint of one file.
    """
    numbered = sorted(_numbered(files))
    if any(name == f"{0:0{_DIGITS}d}{_COMMIT}" for _, name in numbered):
        return None
    return next((v for v, name in numbered if _is_checkpoint(v, name)), None)


def _is_checkpoint(version: int, name: str) -> bool:
    return name == f"{version:0{_DIGITS}d}{_CHECKPOINT}"


def _numbered(names: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield version and name of files that belong to a version, with Hadoop's ``.N.json.crc``."""
    for name in names:
        number = name.removeprefix(".")[:_DIGITS]
        if number.isdecimal():
            yield int(number), name
