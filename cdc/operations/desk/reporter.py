"""Reports the progress of a running operation, and lets it be paused, cancelled or stopped."""

import math
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from cdc.failpoints import Failpoint, reach
from cdc.state import operation_files as files
from cdc.state.operation import OperationState, Progress, TableResult

WRITE_SECONDS: Final = 0.5
"""How often counts alone are written to the file."""
LOOK_SECONDS: Final = 0.3
"""How often a paused operation looks whether it may go on."""


class Interrupted(BaseException):
    """Ends an operation because the job stops; the next start runs it again.

    It is no Exception, so that no handler's ``except Exception`` catches it.
    """


def utc_now() -> str:
    """Return the current time in ISO 8601, UTC."""
    return datetime.now(UTC).isoformat()


class Reporter:
    """Reports the progress of one operation; its methods may be called by any thread."""

    def __init__(self, state_dir: Path, running: Progress, stop: threading.Event) -> None:
        """``running`` is the progress at this start of the operation, ``stop`` ends the job."""
        self._state_dir = state_dir
        self._stop = stop
        self._lock = threading.Lock()
        self._written = -math.inf
        self.progress = replace(running, counted_from=utc_now())

    def tell(
        self,
        *,
        phase: str | None = None,
        table: str | None = None,
        rows: int | None = None,
        chunks: int | None = None,
        rows_expected: int | None = None,
        tables: int | None = None,
    ) -> None:
        """Report what has changed; what is not given stays, except counts of an earlier table.

        A change of phase or table is written at once, anything else at most twice a second.
        """
        given = {"rows": rows, "chunks": chunks, "rows_expected": rows_expected, "tables": tables}
        change: dict[str, Any] = {name: new for name, new in given.items() if new is not None}
        with self._lock:
            before = self.progress
            next_table = table is not None and table != before.table
            if next_table:
                change = {"rows": 0, "chunks": 0, "rows_expected": None, **change, "table": table}
            next_phase = next_table or (phase is not None and phase != before.phase)
            self._change(phase=before.phase if phase is None else phase, **change)
            if next_phase:
                self._restart_rate()
            if next_phase or time.monotonic() - self._written >= WRITE_SECONDS:
                self._write()

    def remaining(self, tables: Iterable[str]) -> list[str]:
        """Return the tables without a result; the others were done before the job ended."""
        done = {result.table for result in self.progress.results}
        return [table for table in tables if table not in done]

    def done(self, result: TableResult) -> None:
        """Report the result of a table; it replaces an earlier one of the same table."""
        with self._lock:
            others = (other for other in self.progress.results if other.table != result.table)
            results = (*others, result)
            self._change(results=results, tables_done=len(results))
            reach(Failpoint.BEFORE_OPERATION_RESULT)
            self._write()
            reach(Failpoint.AFTER_OPERATION_RESULT)

    def write_fields(self, **change: Any) -> None:  # noqa: ANN401 - any field of Progress
        """Replace fields of the progress, and write it at once."""
        with self._lock:
            self._change(**change)
            self._write()

    def safe_point(self) -> None:
        """Let the operation be paused or ended here, where nothing is half done.

        Waits while the operation is paused. Raises CANCELLED where it was cancelled, and
        Interrupted where the job stops.
        """
        if self._stop.is_set():
            raise Interrupted
        wish = files.control_request(self._state_dir, self.progress.id)
        if wish == files.PAUSE:
            wish = self._pause()
        if wish == files.CANCEL:
            raise files.cancellation(self.progress.id)

    def refuse_ended(self) -> None:
        """Raise Interrupted where the job stops, without pausing: called right before a commit.

        It is called too where something seems broken, since Spark's work may have been cancelled.
        """
        if self._stop.is_set():
            raise Interrupted

    def wait(self, seconds: float) -> None:
        """Wait that long, or until the job stops; then be at a safe point."""
        self._stop.wait(seconds)
        self.safe_point()

    def _pause(self) -> str:
        """Wait while the operation is paused; return what is wished for then."""
        before = self.progress.state
        self.write_fields(state=OperationState.PAUSED)
        while (wish := files.control_request(self._state_dir, self.progress.id)) == files.PAUSE:
            if self._stop.wait(LOOK_SECONDS):
                raise Interrupted
        with self._lock:
            self._change(state=before)
            self._restart_rate()
            self._write()
        return wish

    def _restart_rate(self) -> None:
        self._change(counted_from=utc_now(), rows_before=self.progress.rows)

    def _change(self, **change: Any) -> None:  # noqa: ANN401 - any field of Progress
        self.progress = replace(self.progress, **change, updated_at=utc_now())

    def _write(self) -> None:
        files.write_progress(self._state_dir, self.progress)
        self._written = time.monotonic()
