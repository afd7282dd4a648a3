"""Counts the rows of all readers, holds them to the pace, and reports."""

from threading import Lock
from typing import Final

from cdc.operations.desk.reporter import Reporter
from cdc.operations.first_snapshot.pace import Pace
from cdc.waiting import poll

_LOOK_SECONDS: Final = 0.5


class ReadProgress:
    """Counts the rows of all readers together; any thread may call ``read``."""

    def __init__(self, reporter: Reporter, rows_per_second: int) -> None:
        self._reporter = reporter
        self._pace = Pace(rows_per_second)
        self._lock = Lock()
        self._gate = Lock()  # one reader at a time is at a safe point, where it may be paused
        self._rows = 0
        self._expected = 0

    def expect(self, rows: int) -> None:
        """Report that reading begins, of about so many rows."""
        self._expected = rows
        self._reporter.tell(phase="reading", rows=0, rows_expected=rows)

    def read(self, rows: int) -> None:
        """Count rows of one reader, and let it wait where it is ahead of the pace.

        It is a safe point: raises CANCELLED or Interrupted.
        """
        with self._lock:
            self._rows += rows
            now = self._rows
        self._reporter.tell(rows=now, rows_expected=max(self._expected, now))
        self._safe_point()
        if (left := self._pace.take(rows)) > 0:
            poll(self._safe_point, bool, every=min(left, _LOOK_SECONDS), seconds=left)

    def _safe_point(self) -> bool:
        """Return false: nobody waits for it to be reached."""
        with self._gate:
            self._reporter.safe_point()
        return False
