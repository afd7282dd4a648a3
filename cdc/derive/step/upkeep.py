"""Keeps a derived table small: few files, and none that no kept version needs."""

import time
from threading import Lock
from typing import Final

import pyarrow as pa
import structlog

from cdc.derive.step.mark import Mark
from cdc.lake.commit.combined import CombineError
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.files.file_store import StoreError
from cdc.lake.layout import lake_of
from cdc.lake.table.foreign_commits import refuse_damaged
from cdc.lake.upkeep.driver_files import combined, purged
from cdc.lake.upkeep.erasure import delete_older
from cdc.lake.upkeep.held import oldest_hold
from cdc.lake.upkeep.old_versions import clean
from cdc.lake.upkeep.strays import NotUnderstoodError, delete_strays

EVERY: Final = 50
"""How many versions pass between two searches for files that are needed no more."""
HOUR: Final = 3600
_UNCOMMITTED_SECONDS: Final = 600
"""A file may be so old before a commit adds it; also covers a difference between two clocks."""
_CLEANING: Final = Lock()
"""An operation may clean a table while its own step does."""
logger = structlog.get_logger(__name__)


def kept_properties(kept_hours: int) -> dict[str, str]:
    """Return the properties of a table whose log and removed files are kept for so many hours."""
    kept = f"interval {kept_hours:d} hours"
    return {
        "delta.checkpointInterval": "50",
        "delta.logRetentionDuration": kept,
        "delta.deletedFileRetentionDuration": kept,
    }


def keep_small(committer: Committer, path: str, before: int, mark: Mark, kept_hours: int) -> int:
    """Do what is due after the commits behind version ``before``; return the newest version.

    At most one work of each kind is done, and none is more than a few megabytes. What fails is left
    for the next time: the table is whole without. Raises CHAIN_BROKEN for a log that no reader can
    open, which shows when a checkpoint cannot be written.
    """
    version = committer.open().version
    try:
        version = _combine(committer, mark) or version
        due = committer.due_for_checkpoint(before, version)
        if due is not None and not committer.checkpoint(due):
            refuse_damaged(path)
        if before // EVERY < version // EVERY:
            _clean(path, kept_hours)
    except StoreError:
        raise
    except (CombineError, NotUnderstoodError, TakeMergeError, OSError, pa.ArrowException) as error:
        logger.warning("a derived table is not kept small", path=path, reason=str(error))
    return version


def _combine(committer: Committer, mark: Mark) -> int | None:
    """Make one file of several small ones, or of one with many deleted rows, if that is due."""
    files = committer.open().files.values()
    chosen = combined(files) or purged(files)
    if not chosen:
        return None
    found = committer.combining(chosen)()
    return committer.take_place(found, mark)


def forget_older(path: str, since: float) -> None:
    """Delete the versions older than the newest at ``since``, beside the table's own steps.

    Whoever still reads such a version fails. Raises as ``delete_older``.
    """
    with _CLEANING:
        delete_older(path, since)


def _clean(path: str, kept_hours: int) -> None:
    since = time.time() - kept_hours * HOUR
    hold = oldest_hold(lake_of(path))
    since = since if hold is None else min(since, hold)
    with _CLEANING:
        clean(path, since)
        delete_strays(path, min(since, time.time() - _UNCOMMITTED_SECONDS))
