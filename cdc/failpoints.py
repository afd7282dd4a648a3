"""Failpoints: named places, before and after each durable step of the job, at which a test ends it.

Without the environment variable they do nothing. It names a directory; a file there, by the name
of a failpoint, lets the process kill itself as it gets there, and is gone before that, so that
the next process passes by. A number in the file lets it pass so many times less one. ``hold`` lets
the thread wait there instead, for as long as the file is there; it says ``held`` meanwhile.
"""

import os
import signal
import time
from enum import StrEnum, unique
from pathlib import Path
from typing import Final

VARIABLE: Final = "WAL2LAKE_FAILPOINTS"
HOLD: Final = "hold"
HELD: Final = "held"
_DIRECTORY: Final = os.environ.get(VARIABLE)
_LOOK_SECONDS: Final = 0.05


@unique
class Failpoint(StrEnum):
    """Before: nothing of the step is durable; after: all of it, and nobody was told yet."""

    BEFORE_LOG_CREATE = "before-log-create"
    """The lake has no log."""
    AFTER_LOG_CREATE = "after-log-create"
    """The log is empty, with a position."""
    BEFORE_LOG_APPEND = "before-log-append"
    """A landing is read from Kafka and in no commit."""
    AFTER_LOG_APPEND = "after-log-append"
    """A landing is in the log, and the rounds have not heard of it."""
    BEFORE_TABLE_CREATE = "before-table-create"
    """A captured table has no table in the lake."""
    AFTER_TABLE_CREATE = "after-table-create"
    """It has an empty one, which nobody follows yet."""
    BEFORE_TABLE_RETURN = "before-table-return"
    """A table that was taken out is captured again, and still stands where it was left."""
    AFTER_TABLE_RETURN = "after-table-return"
    """It is marked as one that has to be read."""
    BEFORE_TABLE_COMMIT = "before-table-commit"
    """A table is behind the cut that it is brought to."""
    AFTER_TABLE_COMMIT = "after-table-commit"
    """It is at the cut; others may be behind, and the ledger has no row of it."""
    BEFORE_STRUCTURE_STEP = "before-structure-step"
    """One commit of a change of a table's structure is to be made."""
    AFTER_STRUCTURE_STEP = "after-structure-step"
    """It is made; the rest of the change is not."""
    BEFORE_REHASH = "before-rehash"
    """The columns of a table without a key changed, and the digests of its rows did not."""
    AFTER_REHASH = "after-rehash"
    """The digests are those of the columns of now."""
    BEFORE_STRUCTURE_NOTE = "before-structure-note"
    """All steps of a change are done, and the table does not say that it follows it."""
    AFTER_STRUCTURE_NOTE = "after-structure-note"
    """It says so."""
    BEFORE_QUARANTINE_ADD = "before-quarantine-add"
    """Events are refused and nowhere recorded."""
    AFTER_QUARANTINE_ADD = "after-quarantine-add"
    """They are in quarantine, and their table is not past them."""
    BEFORE_QUARANTINE_SETTLE = "before-quarantine-settle"
    """The rows of refused events are right again, or given up, and the events open."""
    AFTER_QUARANTINE_SETTLE = "after-quarantine-settle"
    """The events are settled, and their table still counts them."""
    BEFORE_OPTIMIZE = "before-optimize"
    """A table or the log has many small files."""
    AFTER_OPTIMIZE = "after-optimize"
    """They are rewritten, with the position carried on."""
    BEFORE_VACUUM = "before-vacuum"
    """Files that no kept version needs are there."""
    AFTER_VACUUM = "after-vacuum"
    """They are gone; two commits without rows tell of it."""
    BEFORE_COMMIT_EXPIRY = "before-commit-expiry"
    """A table's transaction log has commits that no kept version needs."""
    AFTER_COMMIT_EXPIRY = "after-commit-expiry"
    """They are gone."""
    BEFORE_CONTROL_OPTIMIZE = "before-control-optimize"
    """The ledger, or another table written without Spark, has many files."""
    AFTER_CONTROL_OPTIMIZE = "after-control-optimize"
    """They are rewritten."""
    BEFORE_CONTROL_VACUUM = "before-control-vacuum"
    """The files of before are to be looked through."""
    AFTER_CONTROL_VACUUM = "after-control-vacuum"
    """Those are gone that no kept version needs."""
    BEFORE_LEDGER_EXPIRY = "before-ledger-expiry"
    """The ledger has cuts that are older than its retention."""
    AFTER_LEDGER_EXPIRY = "after-ledger-expiry"
    """They are gone, and the newest commit still says what the last cut is."""
    BEFORE_LOG_EXPIRY = "before-log-expiry"
    """The log has events that no cut needs any more."""
    AFTER_LOG_EXPIRY = "after-log-expiry"
    """They are gone, and the commit says up to where."""
    BEFORE_IMAGE_RECORD = "before-image-record"
    """An image is made, and no index knows it."""
    AFTER_IMAGE_RECORD = "after-image-record"
    """The index knows it; older readings are still there."""
    BEFORE_READING_EXPIRY = "before-reading-expiry"
    """Readings are in the index that no cut needs any more."""
    AFTER_READING_EXPIRY = "after-reading-expiry"
    """Their files are gone, and the index has forgotten them."""
    BEFORE_LEDGER_APPEND = "before-ledger-append"
    """Every table is at the cut, and nobody can know."""
    AFTER_LEDGER_APPEND = "after-ledger-append"
    """The cut is published, and the job has not taken it for the base of the next."""
    BEFORE_DIFFERENCE_WRITE = "before-difference-write"
    """What a reading would change in its table is found and written nowhere."""
    AFTER_DIFFERENCE_WRITE = "after-difference-write"
    """It is written, in no index and in no table."""
    BEFORE_READING_WRITE = "before-reading-write"
    """A whole reading is kept only in scratch space."""
    AFTER_READING_WRITE = "after-reading-write"
    """It is a table of its own, in no index."""
    BEFORE_READING_RECORD = "before-reading-record"
    """The index of readings does not know a reading that is written."""
    AFTER_READING_RECORD = "after-reading-record"
    """It knows it, and the reading is not in its table."""
    BEFORE_COMMIT_NOTE = "before-commit-note"
    """Nothing says yet what would come of the commit of a reading."""
    AFTER_COMMIT_NOTE = "after-commit-note"
    """The operation says what comes of a commit that is not made."""
    BEFORE_DIFFERENCE_MERGE = "before-difference-merge"
    """A table is without its reading."""
    AFTER_DIFFERENCE_MERGE = "after-difference-merge"
    """The reading is in it; the events that it settles are open."""
    BEFORE_READING_SWAP = "before-reading-swap"
    """A reading that has caught up is not in the place of its table."""
    AFTER_READING_SWAP = "after-reading-swap"
    """It is; the events that it settles are open."""
    BEFORE_REPLAY_SWAP = "before-replay-swap"
    """A table that was made anew is not in the place of the live one."""
    AFTER_REPLAY_SWAP = "after-replay-swap"
    """It is, and its operation does not know."""
    BEFORE_BROKEN_MOVE = "before-broken-move"
    """A directory that nobody can read is in the place of a table."""
    AFTER_BROKEN_MOVE = "after-broken-move"
    """It is moved away, and nothing is in that place."""
    BEFORE_PURGE_TOPIC = "before-purge-topic"
    """A table that is out is to be purged, and all of it is there."""
    BEFORE_TOPIC_OPEN = "before-topic-open"
    """A topic is compacted, so nobody may delete records of it."""
    AFTER_TOPIC_OPEN = "after-topic-open"
    """Records of it may be deleted, and none is."""
    BEFORE_TOPIC_CLOSE = "before-topic-close"
    """They are deleted, and the topic has still other settings than are specified."""
    AFTER_TOPIC_CLOSE = "after-topic-close"
    """It has those that are specified."""
    AFTER_PURGE_TOPIC = "after-purge-topic"
    """Its topic is empty."""
    BEFORE_PURGE_INDEX = "before-purge-index"
    """Its readings are in the index."""
    AFTER_PURGE_INDEX = "after-purge-index"
    """They are not, and their files are there."""
    BEFORE_PURGE_READINGS = "before-purge-readings"
    """The files of its readings are to be removed."""
    AFTER_PURGE_READINGS = "after-purge-readings"
    """They are removed, and its table is there."""
    BEFORE_PURGE_TABLE = "before-purge-table"
    """Its table is the last of it."""
    AFTER_PURGE_TABLE = "after-purge-table"
    """Nothing is left of it, and its operation does not know."""
    BEFORE_OPERATION_CLAIM = "before-operation-claim"
    """An operation is asked for and waits."""
    AFTER_OPERATION_CLAIM = "after-operation-claim"
    """Its file says that it runs."""
    BEFORE_OPERATION_BEGIN = "before-operation-begin"
    """The lake has no row that says that it runs."""
    AFTER_OPERATION_BEGIN = "after-operation-begin"
    """It has one, and nothing of the work is done."""
    BEFORE_OPERATION_RESULT = "before-operation-result"
    """An operation is done with a table and does not say so."""
    AFTER_OPERATION_RESULT = "after-operation-result"
    """It says so, and would pass over the table."""
    BEFORE_OPERATION_ENDING = "before-operation-ending"
    """All is done, and nothing says how it ended."""
    AFTER_OPERATION_ENDING = "after-operation-ending"
    """A file says how it ended; neither the lake nor who asked knows."""
    BEFORE_OPERATION_END = "before-operation-end"
    """The row in the lake says that it runs."""
    AFTER_OPERATION_END = "after-operation-end"
    """The row says how it ended."""
    BEFORE_OPERATION_TELL = "before-operation-tell"
    """Who asked still waits."""
    AFTER_OPERATION_TELL = "after-operation-tell"
    """Who asked can see the end."""


def reach(point: Failpoint) -> None:
    """Kill this process, or wait, where a file by the name of the point asks for it."""
    if _DIRECTORY is None:
        return
    asked = Path(_DIRECTORY) / point
    try:
        text = asked.read_text()
    except FileNotFoundError:
        return
    if text in {HOLD, HELD}:
        _wait(asked)
        return
    passes = int(text or 1)
    if passes > 1:
        asked.write_text(str(passes - 1))
        return
    # Another thread may be here too: one of them kills both.
    asked.unlink(missing_ok=True)
    os.kill(os.getpid(), signal.SIGKILL)


def _wait(asked: Path) -> None:
    asked.write_text(HELD)
    while asked.exists():
        time.sleep(_LOOK_SECONDS)
