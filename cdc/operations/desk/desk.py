"""Runs the requested operations one after the other, in one thread of the job: the desk.

The progress of an operation is in files, so that it outlives the job and the command. An operation
that ran when the job ended is run again at the next start, with its results so far: its handler
skips the tables that have one.
"""

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import structlog

from cdc.errors import CdcError, ErrorKind
from cdc.failpoints import Failpoint, reach
from cdc.lake.files.unreachable import unreachable
from cdc.lake.records.operations import Operations
from cdc.observe.defects import error_text
from cdc.operations.desk.record import OperationRecorder
from cdc.operations.desk.reporter import Interrupted, Reporter, utc_now
from cdc.state import operation_files as files
from cdc.state.operation import Operation, OperationState, Progress

__all__ = ["Desk", "Handler", "Interrupted", "Reporter"]

logger = structlog.get_logger(__name__)
LOOK_SECONDS: Final = 0.3
RETRY_SECONDS: Final = 5.0
MOST_STARTS: Final = 5
"""An operation during which the job died this often is not started again."""
MOST_TEXT: Final = 300

Handler = Callable[[Operation, Reporter], None]
"""Does the work of one command; raises CdcError where it fails."""


class Desk:
    """Runs operations with the handlers of their commands."""

    def __init__(
        self, state_dir: Path, record: Operations, handlers: Mapping[str, Handler]
    ) -> None:
        self._state_dir = state_dir
        self._recorder = OperationRecorder(state_dir, record)
        self._handlers = dict(handlers)
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> threading.Thread:
        """Start the desk's thread, and return it."""
        self._thread = threading.Thread(target=self._run, name="desk", daemon=True)
        self._thread.start()
        return self._thread

    def stop(self, timeout: float | None = None) -> bool:
        """Let the running operation end at its next safe point.

        Waits up to ``timeout`` seconds, or without a limit for None, and returns whether the
        thread has ended.
        """
        self._stop.set()
        if self._thread is None:
            return True
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if self._work():
                    continue
            except Exception:
                # The files or the lake cannot be read or written now: try again later.
                logger.exception("the desk could not go on")
                self._stop.wait(RETRY_SECONDS)
            self._stop.wait(LOOK_SECONDS)

    def _work(self) -> bool:
        """Run the oldest operation that is not paused; return whether there was one."""
        for operation in self._recorder.unfinished():
            if files.control_request(self._state_dir, operation.id) != files.PAUSE:
                return self._take(operation)
        return False

    def _take(self, operation: Operation) -> bool:
        running = self._claim(operation)
        if running is None:
            return False
        logger.info("operation", id=operation.id, command=operation.command, state="running")
        self._recorder.record_begin(operation, running)
        ended = self._handled(operation, running)
        if ended is not None:
            self._recorder.close(operation, ended)
            logger.info("operation", id=ended.id, state=ended.state.value, outcome=ended.outcome)
        return True

    def _claim(self, operation: Operation) -> Progress | None:
        """Mark the operation as running; None where it was cancelled in the meantime."""
        with files.locked(self._state_dir):
            before = files.progress(self._state_dir, operation.id)
            if before.state.ended:
                return None
            running = Progress(
                id=operation.id,
                state=OperationState.RUNNING,
                tables=len(operation.tables),
                started_at=before.started_at or utc_now(),
                updated_at=utc_now(),
                results=before.results,
                tables_done=before.tables_done,
                commit=before.commit,
                starts=before.starts + 1,
            )
            reach(Failpoint.BEFORE_OPERATION_CLAIM)
            files.write_progress(self._state_dir, running)
            reach(Failpoint.AFTER_OPERATION_CLAIM)
        return running

    def _handled(self, operation: Operation, running: Progress) -> Progress | None:
        """Run the handler and return how it ended; None where the job stops and will run it again.

        A stop of the job does not count as one of its deaths, so it is taken off ``starts``.
        """
        reporter = Reporter(self._state_dir, running, self._stop)
        try:
            handler = self._handler(operation, running)
            reporter.safe_point()  # it may have been cancelled before this start
            handler(operation, reporter)
        except Interrupted:
            reporter.write_fields(starts=running.starts - 1)
            return None
        except CdcError as error:
            return _failed(reporter.progress, error)
        except BaseException as error:
            if self._stop.is_set():  # it failed because the job is shutting down around it
                reporter.write_fields(starts=running.starts - 1)
                return None
            logger.exception("operation failed", id=operation.id)
            return _failed(reporter.progress, unreachable(error) or _defect(error))
        return _at_end(reporter.progress, OperationState.DONE, phase="")

    def _handler(self, operation: Operation, running: Progress) -> Handler:
        if running.starts > MOST_STARTS:
            raise CdcError(
                ErrorKind.SERVER_FAILED,
                f"the job died {MOST_STARTS} times while the operation ran",
                remedy=f"see {self._state_dir / 'logs' / 'job.log'}, then run the command again",
            )
        handler = self._handlers.get(operation.command)
        if handler is None:
            raise CdcError(
                ErrorKind.CONFLICT,
                f"the running job does not know the command {operation.command}",
                remedy="restart it with this version: wal2lake down, wal2lake up",
            )
        return handler


def _failed(progress: Progress, error: CdcError) -> Progress:
    cancelled = error.kind is ErrorKind.CANCELLED
    return _at_end(
        progress,
        OperationState.CANCELLED if cancelled else OperationState.FAILED,
        reason=f"{error.message}; {error.detail}" if error.detail else error.message,
        remedy=error.remedy,
        error_kind=error.kind.value,
    )


def _at_end(progress: Progress, state: OperationState, **change: Any) -> Progress:  # noqa: ANN401 - any field
    ended_at = utc_now()
    return replace(progress, state=state, updated_at=ended_at, ended_at=ended_at, **change)


def _defect(error: BaseException) -> CdcError:
    return CdcError(
        ErrorKind.INTERNAL,
        f"internal: {error_text(error)[:MOST_TEXT]}",
        remedy="see the job's log file for where it was raised",
    )
