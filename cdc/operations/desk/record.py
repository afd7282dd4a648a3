"""Keeps the rows of operations in the lake in step with their files."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import structlog

from cdc.errors import ErrorKind
from cdc.failpoints import Failpoint, reach
from cdc.lake.records.operations import Operations, Row
from cdc.state import operation_files as files
from cdc.state.operation import Operation, OperationState, Progress

logger = structlog.get_logger(__name__)
FILE_RETENTION: Final = timedelta(days=7)
"""How long the files of an ended operation stay; its row in the lake stays for ever."""
RETRY_SECONDS: Final = 30.0
"""When to retry a row that could not be written; nobody waits for it, the files say the same."""


class OperationRecorder:
    """Records the begin and the end of operations; used by the desk's thread alone."""

    def __init__(self, state_dir: Path, record: Operations) -> None:
        self._state_dir = state_dir
        self._record = record
        self._ended: set[str] | None = None  # ids of operations that have ended in the lake too
        self._not_before = 0.0

    def unfinished(self) -> list[Operation]:
        """Return the operations that have not ended, the oldest first.

        Operations that ended without a row that says so get one.
        """
        unfinished = []
        for operation in files.all_operations(self._state_dir, without=self._ended_in_lake()):
            progress = files.progress(self._state_dir, operation.id)
            if not progress.state.ended:
                unfinished.append(operation)
            elif time.monotonic() >= self._not_before:
                self.record_end(operation, progress)
        return unfinished

    def record_begin(self, operation: Operation, progress: Progress) -> None:
        """Record that the operation runs; a row that cannot be written only makes a log line."""
        try:
            reach(Failpoint.BEFORE_OPERATION_BEGIN)
            self._record.begin(operation, progress)
            reach(Failpoint.AFTER_OPERATION_BEGIN)
        except Exception:  # the operation does not need the row
            logger.exception("the operation is not recorded", id=operation.id)

    def record_end(self, operation: Operation, progress: Progress) -> None:
        """Record how the operation ended; where that fails, try again later."""
        try:
            reach(Failpoint.BEFORE_OPERATION_END)
            self._record.end(operation, progress)
            reach(Failpoint.AFTER_OPERATION_END)
        except Exception:
            logger.exception("the end of the operation is not recorded", id=operation.id)
            self._not_before = time.monotonic() + RETRY_SECONDS
        else:
            self._ended_in_lake().add(operation.id)

    def close(self, operation: Operation, ended: Progress) -> None:
        """Record how the operation ended, then publish that: whoever sees it finds the row.

        After a crash in between, the next start completes this without running it again.
        """
        reach(Failpoint.BEFORE_OPERATION_ENDING)
        files.write_ending(self._state_dir, ended)
        reach(Failpoint.AFTER_OPERATION_ENDING)
        self.record_end(operation, ended)
        reach(Failpoint.BEFORE_OPERATION_TELL)
        files.tell_ending(self._state_dir, operation.id)
        reach(Failpoint.AFTER_OPERATION_TELL)

    def _tell_endings(self) -> None:
        for operation in files.all_operations(self._state_dir):
            ended = files.ending(self._state_dir, operation.id)
            if ended is not None:
                self.close(operation, ended)

    def _ended_in_lake(self) -> set[str]:
        if self._ended is None:
            rows = self._record.rows()
            self._ended = {row["id"] for row in rows if _has_ended(row)}
            self._tell_endings()
            self._end_lost([row for row in rows if not _has_ended(row)])
            self._remove_old(self._ended)
        return self._ended

    def _end_lost(self, rows: list[Row]) -> None:
        """End the rows of operations whose files are gone: without them they cannot be run."""
        with_files = {operation.id for operation in files.all_operations(self._state_dir)}
        for row in rows:
            if row["id"] not in with_files:
                self.record_end(*_lost(row))

    def _remove_old(self, ended: set[str]) -> None:
        oldest = (datetime.now(UTC) - FILE_RETENTION).isoformat()
        for operation in files.all_operations(self._state_dir):
            ended_at = files.progress(self._state_dir, operation.id).ended_at
            if ended_at is not None and ended_at < oldest and operation.id in ended:
                files.remove(self._state_dir, operation.id)


def _has_ended(row: Row) -> bool:
    return OperationState(row["state"]).ended


def _lost(row: Row) -> tuple[Operation, Progress]:
    options = {"where": row["predicate"], "mode": row["mode"]}
    operation = Operation(
        id=row["id"],
        command=row["command"],
        tables=tuple(row["tables"]),
        line=row["line"],
        asked_by=row["asked_by"],
        asked_at=row["asked_at"].isoformat(),
        options={name: value for name, value in options.items() if value is not None},
    )
    ended_at = datetime.now(UTC).isoformat()
    progress = Progress(id=row["id"], state=OperationState.FAILED, updated_at=ended_at)
    return operation, replace(
        progress,
        ended_at=ended_at,
        started_at=row["started_at"] and row["started_at"].isoformat(),
        reason="its files in the state directory are gone",
        remedy="run the command again if it is still wanted",
        error_kind=ErrorKind.CONFLICT.value,
    )
