"""Deletes what no kept version of a table needs: its files, by what its log says, and its entries.

VACUUM lists the whole directory to find them. At a commit a second that is thousands of files each
time; here the cost follows the commits. An entry is in the log as long as its version is kept, so
a file that an expired entry removed is found once, and nothing has to remember it. Files that were
written and never got into a version are looked for from time to time (cdc/lake/upkeep/strays.py).
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

import structlog

from cdc.failpoints import Failpoint, reach
from cdc.lake.commit.snapshot import entry_actions
from cdc.lake.files.file_store import FileStore
from cdc.lake.files.store_of import store_of
from cdc.lake.table.entry_file import LOG, entry_name
from cdc.lake.upkeep.transaction_log import Kept, kept, obsolete
from cdc.lake.upkeep.version_files import NOT_UNDERSTOOD, files_of, is_inside, needed

logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    """Says what a cleaning has found and done."""

    ages: tuple[float, ...]  # of the versions made since then, in seconds, the youngest first
    files: int  # how many data and vector files it has deleted


def clean(path: str, since: float) -> Cleaned:
    """Delete what no version of the table at ``path`` needs that was the newest at ``since``.

    ``since`` is in seconds since 1970; later versions are kept too. Any thread may, beside the
    table's commits, one at a time. Files go before the entries that removed them, the oldest first:
    if the process dies, the next cleaning finds the rest, and the log just begins later. Raises
    OSError.
    """
    store = store_of(path)
    times = store.times(LOG)
    keeping = kept(times, since)
    names = _unneeded(store, keeping)
    reach(Failpoint.BEFORE_FILE_EXPIRY)
    deleted = sum(store.delete(name) for name in names)
    reach(Failpoint.AFTER_FILE_EXPIRY)
    gone = obsolete(times, since)
    reach(Failpoint.BEFORE_COMMIT_EXPIRY)
    for name in gone:
        store.delete(f"{LOG}/{name}")
    reach(Failpoint.AFTER_COMMIT_EXPIRY)
    return Cleaned(ages=_ages(times, keeping), files=deleted)


def _ages(times: Mapping[str, float], keeping: Kept) -> tuple[float, ...]:
    now = time.time()
    names = (PurePosixPath(entry_name(v)).name for v in range(keeping.newest, keeping.oldest, -1))
    return tuple(now - times[name] for name in names if name in times)


def _unneeded(store: FileStore, keeping: Kept) -> list[str]:
    """Return the files that an expired entry removed and no kept version has.

    They are none if the log has something in it that is not known here, as Spark may put there: a
    checkpoint of several files, for example.
    """
    if keeping.oldest < 0:
        return []
    try:
        removed = _removed(store, keeping)
        for name in needed(store, keeping):
            removed.pop(name, None)
    except NOT_UNDERSTOOD as error:
        logger.warning("old files are left to VACUUM", path=store.path, reason=str(error))
        return []
    return list(removed)


def _removed(store: FileStore, keeping: Kept) -> dict[str, None]:
    """Return the files that the expired entries have removed, the oldest first."""
    found = dict[str, None]()
    for version in keeping.expired:
        for action in entry_actions(store, version):
            if (removed := action.get("remove")) is not None:
                found.update(dict.fromkeys(filter(is_inside, files_of(removed))))
    return found
