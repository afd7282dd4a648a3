"""Define failpoints: places before and after each durable step of the job where a test kills it.

Without the environment variable they do nothing. The variable names a directory. If it has a file
named like a failpoint, the process deletes the file and kills itself on reaching that failpoint,
so that the next process gets past it. A number n in the file means the n-th time. ``hold`` in the
file makes the thread wait there until the file is deleted; the file then contains ``held``.
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
    """The failpoints before and after each durable step.

    Before a step nothing of it is durable. After it, all of it is, but nothing else knows yet.
    """

    BEFORE_LOG_CREATE = "before-log-create"
    """The lake has no log."""
    AFTER_LOG_CREATE = "after-log-create"
    """The log is empty and has a position."""
    BEFORE_LOG_APPEND = "before-log-append"
    """A landing has been read from Kafka but is in no commit."""
    AFTER_LOG_APPEND = "after-log-append"
    """A landing is in the log, but the rounds do not know of it."""
    BEFORE_TABLE_CREATE = "before-table-create"
    """A captured table has no table in the lake."""
    AFTER_TABLE_CREATE = "after-table-create"
    """It has an empty one, to which nothing is applied yet."""
    BEFORE_TABLE_RETURN = "before-table-return"
    """A table that was taken out is captured again, but is still where it was left."""
    AFTER_TABLE_RETURN = "after-table-return"
    """It is marked to be read again."""
    BEFORE_TABLE_COMMIT = "before-table-commit"
    """A table is behind the cut to which it is being brought."""
    AFTER_TABLE_COMMIT = "after-table-commit"
    """It is at the cut; others may be behind, and the ledger has no row for the cut."""
    BEFORE_ROWS_WRITE = "before-rows-write"
    """A commit from this process has written nothing yet."""
    AFTER_ROWS_WRITE = "after-rows-write"
    """Its new rows are in a data file, but no version has it."""
    BEFORE_VECTORS_WRITE = "before-vectors-write"
    """Its deletion vectors are only in memory."""
    AFTER_VECTORS_WRITE = "after-vectors-write"
    """They are in a vector file, but no version has it."""
    BEFORE_ENTRY_PUT = "before-entry-put"
    """All its files are durable, but its entry is not in the table's log."""
    AFTER_ENTRY_PUT = "after-entry-put"
    """The entry is in the log, but the round does not know."""
    BEFORE_COMBINED_WRITE = "before-combined-write"
    """A table has small files that this process combines; the combined one is in memory."""
    AFTER_COMBINED_WRITE = "after-combined-write"
    """The combined file is durable, but no version has it."""
    BEFORE_TABLE_CHECKPOINT = "before-table-checkpoint"
    """A version that is due for a checkpoint has none."""
    AFTER_TABLE_CHECKPOINT = "after-table-checkpoint"
    """It has one."""
    BEFORE_DERIVED_COMMIT = "before-derived-commit"
    """All captured tables are at the cut; a derived one is not."""
    AFTER_DERIVED_COMMIT = "after-derived-commit"
    """It is at the cut, which the ledger does not have."""
    BEFORE_STRUCTURE_STEP = "before-structure-step"
    """The next commit of a change of a table's structure is not made."""
    AFTER_STRUCTURE_STEP = "after-structure-step"
    """It is made, but the rest of the change is not."""
    BEFORE_REHASH = "before-rehash"
    """The columns of a table without a key have changed, but the digests of its rows have not."""
    AFTER_REHASH = "after-rehash"
    """The digests are those of the new columns."""
    BEFORE_STRUCTURE_NOTE = "before-structure-note"
    """All steps of a change are done, but the table does not record that it has the change."""
    AFTER_STRUCTURE_NOTE = "after-structure-note"
    """It records it."""
    BEFORE_QUARANTINE_ADD = "before-quarantine-add"
    """Events are refused but recorded nowhere."""
    AFTER_QUARANTINE_ADD = "after-quarantine-add"
    """They are in quarantine, but their table's position is still before them."""
    BEFORE_QUARANTINE_SETTLE = "before-quarantine-settle"
    """The rows of refused events are right again or given up, but the events are still open."""
    AFTER_QUARANTINE_SETTLE = "after-quarantine-settle"
    """The events are settled, but their table still counts them."""
    BEFORE_OPTIMIZE = "before-optimize"
    """A table or the log has many small files."""
    AFTER_OPTIMIZE = "after-optimize"
    """They are rewritten, and the commit has the position."""
    BEFORE_VACUUM = "before-vacuum"
    """There are files that no kept version needs."""
    AFTER_VACUUM = "after-vacuum"
    """They are deleted, which two commits without rows record."""
    BEFORE_FILE_EXPIRY = "before-file-expiry"
    """A table has files that only expired versions need, and the entries that removed them."""
    AFTER_FILE_EXPIRY = "after-file-expiry"
    """The files are deleted; the entries are there."""
    BEFORE_COMMIT_EXPIRY = "before-commit-expiry"
    """A table's transaction log has commits that no kept version needs."""
    AFTER_COMMIT_EXPIRY = "after-commit-expiry"
    """They are deleted."""
    BEFORE_CONTROL_OPTIMIZE = "before-control-optimize"
    """The ledger, or another table written without Spark, has many files."""
    AFTER_CONTROL_OPTIMIZE = "after-control-optimize"
    """They are rewritten."""
    BEFORE_CONTROL_VACUUM = "before-control-vacuum"
    """The old files are still there."""
    AFTER_CONTROL_VACUUM = "after-control-vacuum"
    """Those that no kept version needs are deleted."""
    BEFORE_LEDGER_EXPIRY = "before-ledger-expiry"
    """The ledger has cuts that are older than its retention."""
    AFTER_LEDGER_EXPIRY = "after-ledger-expiry"
    """They are deleted, and the newest commit still says what the last cut is."""
    BEFORE_LOG_EXPIRY = "before-log-expiry"
    """The log has events that no cut needs any longer."""
    AFTER_LOG_EXPIRY = "after-log-expiry"
    """They are deleted, and the commit says up to where."""
    BEFORE_IMAGE_RECORD = "before-image-record"
    """An image is complete but in no index."""
    AFTER_IMAGE_RECORD = "after-image-record"
    """It is in the index; older readings are still there."""
    BEFORE_READING_EXPIRY = "before-reading-expiry"
    """The index has readings that no cut needs any longer."""
    AFTER_READING_EXPIRY = "after-reading-expiry"
    """Their files are deleted, and they are no longer in the index."""
    BEFORE_LEDGER_APPEND = "before-ledger-append"
    """Every table is at the cut, but the cut is not published."""
    AFTER_LEDGER_APPEND = "after-ledger-append"
    """The cut is published, but the job does not yet start from it for the next one."""
    BEFORE_DIFFERENCE_WRITE = "before-difference-write"
    """The difference between a reading and its table is computed but written nowhere."""
    AFTER_DIFFERENCE_WRITE = "after-difference-write"
    """It is written, but in no index and not merged."""
    BEFORE_READING_WRITE = "before-reading-write"
    """A whole reading is only in scratch space."""
    AFTER_READING_WRITE = "after-reading-write"
    """It is a table of its own, but in no index."""
    BEFORE_COPY_WRITE = "before-copy-write"
    """Rows of a table's first snapshot have been read, but are in no data file of it."""
    AFTER_COPY_WRITE = "after-copy-write"
    """They are in a data file, but no version has it."""
    BEFORE_COPY_KEEP = "before-copy-keep"
    """All data files of a table's first snapshot are written."""
    AFTER_COPY_KEEP = "after-copy-keep"
    """They are a reading as well, but in no index."""
    BEFORE_READING_RECORD = "before-reading-record"
    """A reading is written but not in the index of readings."""
    AFTER_READING_RECORD = "after-reading-record"
    """It is in the index but not merged into its table."""
    BEFORE_COMMIT_NOTE = "before-commit-note"
    """Nothing records yet what the commit of a reading will result in."""
    AFTER_COMMIT_NOTE = "after-commit-note"
    """The operation records the result of a commit that is not made yet."""
    BEFORE_DIFFERENCE_MERGE = "before-difference-merge"
    """A reading is not merged into its table."""
    AFTER_DIFFERENCE_MERGE = "after-difference-merge"
    """It is merged, but the events that it settles are still open."""
    BEFORE_READING_SWAP = "before-reading-swap"
    """A reading that has caught up is not in the place of its table."""
    AFTER_READING_SWAP = "after-reading-swap"
    """It is, but the events that it settles are still open."""
    BEFORE_REPLAY_SWAP = "before-replay-swap"
    """A replayed table is not in the place of the live one."""
    AFTER_REPLAY_SWAP = "after-replay-swap"
    """It is, but its operation does not know."""
    BEFORE_BROKEN_MOVE = "before-broken-move"
    """An unreadable directory is in the place of a table."""
    AFTER_BROKEN_MOVE = "after-broken-move"
    """It is moved away, and nothing is in its place."""
    BEFORE_PURGE_TOPIC = "before-purge-topic"
    """A table that is no longer captured is to be purged, and all of it is there."""
    BEFORE_TOPIC_OPEN = "before-topic-open"
    """A topic is compacted, so no records can be deleted from it."""
    AFTER_TOPIC_OPEN = "after-topic-open"
    """Records can be deleted from it, but none has been."""
    BEFORE_TOPIC_CLOSE = "before-topic-close"
    """They are deleted, but the topic does not have its specified settings."""
    AFTER_TOPIC_CLOSE = "after-topic-close"
    """It has its specified settings again."""
    AFTER_PURGE_TOPIC = "after-purge-topic"
    """The topic of the table that is purged is empty."""
    BEFORE_PURGE_INDEX = "before-purge-index"
    """The table's readings are in the index."""
    AFTER_PURGE_INDEX = "after-purge-index"
    """They are not in the index, but their files are there."""
    BEFORE_PURGE_READINGS = "before-purge-readings"
    """The files of its readings are there."""
    AFTER_PURGE_READINGS = "after-purge-readings"
    """They are deleted, but the table is there."""
    BEFORE_PURGE_TABLE = "before-purge-table"
    """Only the table itself is left."""
    AFTER_PURGE_TABLE = "after-purge-table"
    """Nothing of it is left, but its operation does not know."""
    BEFORE_OPERATION_CLAIM = "before-operation-claim"
    """A requested operation waits."""
    AFTER_OPERATION_CLAIM = "after-operation-claim"
    """Its file says that it runs."""
    BEFORE_OPERATION_BEGIN = "before-operation-begin"
    """The lake has no row for the running operation."""
    AFTER_OPERATION_BEGIN = "after-operation-begin"
    """It has one, but none of the work is done."""
    BEFORE_OPERATION_RESULT = "before-operation-result"
    """An operation is done with a table but has not recorded it."""
    AFTER_OPERATION_RESULT = "after-operation-result"
    """It has recorded it, and would skip the table."""
    BEFORE_OPERATION_ENDING = "before-operation-ending"
    """All work is done, but nothing records the outcome."""
    AFTER_OPERATION_ENDING = "after-operation-ending"
    """A file records the outcome, but neither the lake nor the waiting command knows it."""
    BEFORE_OPERATION_END = "before-operation-end"
    """The row in the lake says that the operation runs."""
    AFTER_OPERATION_END = "after-operation-end"
    """The row has the outcome."""
    BEFORE_OPERATION_TELL = "before-operation-tell"
    """The command still waits."""
    AFTER_OPERATION_TELL = "after-operation-tell"
    """The command can see the outcome."""


def reach(point: Failpoint) -> None:
    """Kill this process, or wait, if a file named like the failpoint says so."""
    if _DIRECTORY is None:
        return
    trigger = Path(_DIRECTORY) / point
    try:
        text = trigger.read_text()
    except FileNotFoundError:
        return
    if text in {HOLD, HELD}:
        _wait(trigger)
        return
    passes = int(text or 1)
    if passes > 1:
        trigger.write_text(str(passes - 1))
        return
    # Another thread may be here too; then one of them kills both.
    trigger.unlink(missing_ok=True)
    os.kill(os.getpid(), signal.SIGKILL)


def _wait(trigger: Path) -> None:
    trigger.write_text(HELD)
    while trigger.exists():
        time.sleep(_LOOK_SECONDS)
