"""Leaves of a table only what its newest version shows: no older version, and no file of one.

Usual upkeep keeps them for a while, and the log's entries have the least and greatest values of
files that are gone.
"""

import time
from dataclasses import dataclass
from pathlib import PurePosixPath

from cdc.errors import CdcError, ErrorKind
from cdc.lake.files.file_store import StoreError
from cdc.lake.files.store_of import store_of
from cdc.lake.table.checkpoint import write_checkpoint
from cdc.lake.table.entry_file import LOG, entry_name
from cdc.lake.table.positions import open_table
from cdc.lake.upkeep.old_versions import clean
from cdc.lake.upkeep.strays import NotUnderstoodError, delete_strays


@dataclass(frozen=True, slots=True)
class Beginning:
    """Says from which version on a table is kept; ``time`` is in seconds since 1970."""

    version: int  # -1 if there is no table
    time: float


def begin_anew(path: str) -> Beginning:
    """Write a checkpoint of the newest version, and return that version.

    Raises StoreError where that fails: without it the log's older entries are needed.
    """
    table = open_table(path)
    if table is None:
        return Beginning(-1, time.time())
    if not write_checkpoint(path, table.version()):
        raise StoreError(f"no checkpoint of {path} could be written; see the job's log")
    return Beginning(table.version(), newest_time(path, table.version()))


def newest_time(path: str, version: int) -> float:
    """Return when the entry of a version was written, in seconds since 1970, by its store."""
    return store_of(path).times(LOG)[PurePosixPath(entry_name(version)).name]


def delete_older(path: str, since: float) -> int:
    """Delete the versions older than the newest at ``since``, and all files that none has.

    Whoever still reads such a version fails. Returns the number of files. Raises CONFLICT where
    the log has something in it that is not understood.
    """
    cleaned = clean(path, since)
    try:
        return cleaned.files + delete_strays(path, since)
    except NotUnderstoodError as error:
        raise CdcError(
            ErrorKind.CONFLICT,
            f"old files of {path} cannot be told from new ones",
            detail=str(error),
            remedy="run VACUUM on it with Spark once nobody reads it, and repeat the command",
        ) from None
