"""Deletes files in a table's folder that no kept version has: they never got into one.

A process that dies between a data file and the entry that adds it leaves one, and so does whatever
deleted the entry of a file before the file. Spark's VACUUM finds them as well, with its planner and
a few hundred megabytes; here the cost is a listing of the folder.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from pyarrow import fs

from cdc.failpoints import Failpoint, reach
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.files.file_store import FileStore
from cdc.lake.files.store_of import store_of
from cdc.lake.table.entry_file import LOG
from cdc.lake.upkeep.transaction_log import Kept, first_checkpoint, kept
from cdc.lake.upkeep.version_files import NOT_UNDERSTOOD, is_inside, needed

_HIDDEN: Final = ("_", ".")
"""How names begin that are not data: the log, and what other programs keep in a table's folder."""


class NotUnderstoodError(Exception):
    """Says what is in a table's log that only Spark knows."""


def delete_strays(path: str, since: float) -> int:
    """Delete the files written before ``since`` that no version needs, and return their number.

    ``since`` is in seconds since 1970; needed is what a version has that was the newest then or
    later. Any thread may, beside the table's commits, if whoever commits has written before
    ``since`` what is to get into a later version, or looks whether it is still there. Raises
    NotUnderstoodError, then nothing is deleted, or OSError.
    """
    store = store_of(path)
    try:
        names = _twice(store, since)
    except NOT_UNDERSTOOD as error:
        raise NotUnderstoodError(str(error)) from error
    reach(Failpoint.BEFORE_VACUUM)
    deleted = sum(store.delete(name) for name in names)
    reach(Failpoint.AFTER_VACUUM)
    return deleted


def _twice(store: FileStore, since: float) -> list[str]:
    """Look again if a cleaning beside it has deleted an entry meanwhile."""
    try:
        return _strays(store, since)
    except FileNotFoundError:
        return _strays(store, since)


def _strays(store: FileStore, since: float) -> list[str]:
    old = list(_old_files(store.tree, since))  # before the log is read: a new entry's files are new
    found = set(needed(store, _keeping(store, since)))
    if elsewhere := [name for name in found if not is_inside(name)]:
        raise TakeMergeError(f"it has a file elsewhere: {elsewhere[0]}")
    return [name for name in old if name not in found]


def _keeping(store: FileStore, since: float) -> Kept:
    """Return the versions that are kept: all that can be opened, if none has expired."""
    times = store.times(LOG)
    keeping = kept(times, since)
    if keeping.oldest >= 0:
        return keeping
    first = first_checkpoint(times)
    return keeping if first is None else replace(keeping, oldest=first, checkpoint=first)


def _old_files(tree: fs.FileSystem, since: float) -> Iterator[str]:
    for file in tree.get_file_info(fs.FileSelector("", recursive=True)):
        is_data = not any(part.startswith(_HIDDEN) for part in PurePosixPath(file.path).parts)
        if file.type == fs.FileType.File and is_data and file.mtime.timestamp() < since:
            yield file.path
