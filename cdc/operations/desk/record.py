"""Keeps the operations' rows in the lake in step with their files."""

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
KEPT: Final = timedelta(days=7)
"""How long the files of an ended operation stay; its row in the lake stays for ever."""
RETRY_SECONDS: Final = 30.0
"""After a row that could not be written. The files say the same, so nobody waits for it."""


class Keeper:
    """Used by the desk's thread alone."""

    def __init__(self, state_dir: Path, record: Operations) -> None:
        self._state_dir = state_dir
        self._record = record
        self._recorded: set[str] | None = None  # ids of ended operations whose row says so
        self._not_before = 0.0

    def unfinished(self) -> list[Operation]:
        """Oldest first; operations that ended without a row that says so get it here."""
        found = []
        recorded = self._known()
        for operation in files.everything(self._state_dir, without=recorded):
            progress = files.progress(self._state_dir, operation.id)
            if not progress.state.ended:
                found.append(operation)
            elif time.monotonic() >= self._not_before:
                self.ended(operation, progress)
        return found

    def begun(self, operation: Operation, progress: Progress) -> None:
        """Record that it runs."""
        try:
            reach(Failpoint.BEFORE_OPERATION_BEGIN)
            self._record.begin(operation, progress)
            reach(Failpoint.AFTER_OPERATION_BEGIN)
        except Exception:  # the work itself does not need the row
            logger.exception("the operation is not recorded", id=operation.id)

    def ended(self, operation: Operation, progress: Progress) -> None:
        """Record what came of it; where that fails it is tried again later."""
        try:
            reach(Failpoint.BEFORE_OPERATION_END)
            self._record.end(operation, progress)
            reach(Failpoint.AFTER_OPERATION_END)
        except Exception:
            logger.exception("the end of the operation is not recorded", id=operation.id)
            self._not_before = time.monotonic() + RETRY_SECONDS
        else:
            self._known().add(operation.id)

    def close(self, operation: Operation, ended: Progress) -> None:
        """Record what came of it, and then say so: the row is there for who sees that it ended.

        A crash in between is made good by the next start, without another run.
        """
        reach(Failpoint.BEFORE_OPERATION_ENDING)
        files.write_ending(self._state_dir, ended)
        reach(Failpoint.AFTER_OPERATION_ENDING)
        self.ended(operation, ended)
        reach(Failpoint.BEFORE_OPERATION_TELL)
        files.tell_ending(self._state_dir, operation.id)
        reach(Failpoint.AFTER_OPERATION_TELL)

    def _tell_endings(self) -> None:
        for operation in files.everything(self._state_dir):
            ended = files.ending(self._state_dir, operation.id)
            if ended is not None:
                self.close(operation, ended)

    def _known(self) -> set[str]:
        if self._recorded is None:
            rows = self._record.rows()
            self._recorded = {row["id"] for row in rows if _has_ended(row)}
            self._tell_endings()
            self._end_lost([row for row in rows if not _has_ended(row)])
            self._remove_old(self._recorded)
        return self._recorded

    def _end_lost(self, rows: list[Row]) -> None:
        """Rows of operations whose files are gone, with which they could be run again."""
        kept = {operation.id for operation in files.everything(self._state_dir)}
        for row in rows:
            if row["id"] not in kept:
                self.ended(*_lost(row))

    def _remove_old(self, recorded: set[str]) -> None:
        oldest = (datetime.now(UTC) - KEPT).isoformat()
        for operation in files.everything(self._state_dir):
            ended_at = files.progress(self._state_dir, operation.id).ended_at
            if ended_at is not None and ended_at < oldest and operation.id in recorded:
                files.remove(self._state_dir, operation.id)


def _has_ended(row: Row) -> bool:
    return OperationState(row["state"]).ended


def _lost(row: Row) -> tuple[Operation, Progress]:
    given = {"where": row["predicate"], "mode": row["mode"]}
    operation = Operation(
        id=row["id"],
        command=row["command"],
        tables=tuple(row["tables"]),
        line=row["line"],
        asked_by=row["asked_by"],
        asked_at=row["asked_at"].isoformat(),
        options={name: value for name, value in given.items() if value is not None},
    )
    ended_at = datetime.now(UTC).isoformat()
    progress = Progress(id=row["id"], state=OperationState.FAILED, updated_at=ended_at)
    return operation, replace(
        progress,
        ended_at=ended_at,
        started_at=row["started_at"] and row["started_at"].isoformat(),
        reason="its files in the state directory are gone",
        remedy="ask for it again when it is wanted",
        error_kind=ErrorKind.CONFLICT.value,
    )
