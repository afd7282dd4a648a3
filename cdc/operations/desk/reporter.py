"""What a running operation says of itself, and where it can be paused, cancelled or stopped."""

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
LOOK_SECONDS: Final = 0.3


class Interrupted(BaseException):
    """The job stops and will run the operation again; passes every ``except Exception``."""


def now() -> str:
    return datetime.now(UTC).isoformat()


class Reporter:
    """Given to the handler of an operation; its methods may be called by any thread."""

    def __init__(self, state_dir: Path, begun: Progress, stop: threading.Event) -> None:
        self._state_dir = state_dir
        self._stop = stop
        self._lock = threading.Lock()
        self._written = -math.inf
        self.progress = replace(begun, counted_from=now())

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
        """Say what is new; what is left out stays, but for the counts of another table.

        Written at once when phase or table change, and else at most twice a second.
        """
        given = {"rows": rows, "chunks": chunks, "rows_expected": rows_expected, "tables": tables}
        change: dict[str, Any] = {name: new for name, new in given.items() if new is not None}
        with self._lock:
            before = self.progress
            other = table is not None and table != before.table
            if other:
                change = {"rows": 0, "chunks": 0, "rows_expected": None, **change, "table": table}
            turned = other or (phase is not None and phase != before.phase)
            self._change(phase=before.phase if phase is None else phase, **change)
            if turned:
                self._count_anew()
            if turned or time.monotonic() - self._written >= WRITE_SECONDS:
                self._write()

    def left(self, tables: Iterable[str]) -> list[str]:
        """Those without a result; the others were done before the job ended."""
        done = {result.table for result in self.progress.results}
        return [table for table in tables if table not in done]

    def done(self, result: TableResult) -> None:
        """One more table is done; an earlier result of it counts no more."""
        with self._lock:
            others = (each for each in self.progress.results if each.table != result.table)
            results = (*others, result)
            self._change(results=results, tables_done=len(results))
            reach(Failpoint.BEFORE_OPERATION_RESULT)
            self._write()
            reach(Failpoint.AFTER_OPERATION_RESULT)

    def put(self, **change: Any) -> None:  # noqa: ANN401 - any field of Progress
        """Replace fields of the progress, written at once."""
        with self._lock:
            self._change(**change)
            self._write()

    def point(self) -> None:
        """A safe point: nothing is half done here, so that the operation can rest or end.

        Waits while somebody wants a pause; raises CANCELLED, and Interrupted when the job stops.
        """
        if self._stop.is_set():
            raise Interrupted
        wanted = files.wish(self._state_dir, self.progress.id)
        if wanted == files.PAUSE:
            wanted = self._rest()
        if wanted == files.CANCEL:
            raise files.cancellation(self.progress.id)

    def refuse_ended(self) -> None:
        """Raise Interrupted where the job stops: right before a commit, which is no place to rest.

        Also where something seems to be broken: it may only have been cancelled.
        """
        if self._stop.is_set():
            raise Interrupted

    def wait(self, seconds: float) -> None:
        """Let the time pass, or less of it, and be at a safe point: for whoever awaits a cut."""
        self._stop.wait(seconds)
        self.point()

    def _rest(self) -> str:
        """Until nobody wants a pause any more; what is wanted then."""
        before = self.progress.state
        self.put(state=OperationState.PAUSED)
        while (wanted := files.wish(self._state_dir, self.progress.id)) == files.PAUSE:
            if self._stop.wait(LOOK_SECONDS):
                raise Interrupted
        with self._lock:
            self._change(state=before)
            self._count_anew()
            self._write()
        return wanted

    def _count_anew(self) -> None:
        self._change(counted_from=now(), rows_before=self.progress.rows)

    def _change(self, **change: Any) -> None:  # noqa: ANN401 - any field of Progress
        self.progress = replace(self.progress, **change, updated_at=now())

    def _write(self) -> None:
        files.write_progress(self._state_dir, self.progress)
        self._written = time.monotonic()
