"""Define when a row of an input is late, and when a row of the result is final."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from cdc.derive.sql.event_window import EventWindow
from cdc.tables import TableId

Policy = Literal["keep", "aside"]
FINAL: Final = "_final"
"""The column of the result that says whether its window is final."""
START: Final = "_window_start"
END: Final = "_window_end"
"""The columns of late rows that have the start and the end of a window."""
FUTURE: Final = 300_000_000
"""So many microseconds after its own commit a row's time may be; a later one says nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Bounds a LEFT JOIN in time: a row belongs to another up to ``length`` after that one."""

    time: str  # the column of the table whose rows may be late
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRule:
    """Says which rows are late for one derived table, and which of its rows are final.

    Times and durations are in microseconds; times are since 1970 in UTC.
    """

    table: TableId  # the captured table whose rows may be late
    window: EventWindow | Bound  # that its rows are in; ``time`` is the column that decides
    shown: str  # the output column that has the window's end, its start, or the waiting row's time
    shows_end: bool
    allowed: int
    rows: TableId  # the derived table of its late rows, whose commits have the watermark
    idle: int | None = None  # how long the table may rest before its windows close without rows
    policy: Policy = "keep"
    emits_final: bool = False  # rows that are not final are left out
    admissions: int | None = None  # the cut up to which admitted rows count; None: all do

    @property
    def judged_by(self) -> Mapping[str, Any]:
        """Return what besides the watermark makes rows late; of a bound, all but its length."""
        return {"time": self.window.time} if isinstance(self.window, Bound) else asdict(self.window)

    def place(self, key: Sequence[str]) -> tuple[str, ...]:
        """Return the columns of late rows that say where one counts: a key in a window.

        What a row waits for is looked up by its key alone.
        """
        return tuple(key) if isinstance(self.window, Bound) else (*key, START)

    def last_end(self, time: int) -> int:
        """Return the end of the last window that a row of this time falls into.

        A session is the one that the row would be by itself: which others it joins depends on them.
        With a bound it is the row's own time: the other row may have waited no longer than that.
        """
        if isinstance(self.window, Bound):
            return time
        if self.is_of_sessions:
            return time + self.window.length
        since = (time - self.window.origin) // self.window.slide * self.window.slide
        return since + self.window.origin + self.window.length

    def start(self, time: int) -> int:
        """Return the start of the window that ``last_end`` ends."""
        return self.last_end(time) - self._length

    def end(self, start: int) -> int:
        """Return the end of the window that starts there."""
        return start + self._length

    @property
    def is_of_sessions(self) -> bool:
        """Return whether the windows are sessions, which have a start once their rows are known."""
        return isinstance(self.window, EventWindow) and self.window.form == "sessions"

    @property
    def puts_hops_aside(self) -> bool:
        """Return whether a row can be late for some of its windows, and in time for others."""
        is_hop = isinstance(self.window, EventWindow) and self.window.form == "hop"
        return is_hop and self.policy == "aside"

    def late_starts(self, time: int, watermark: int | None) -> Sequence[int]:
        """Return the starts of the windows for which a row is late, in order.

        With ``policy: keep`` that is the last one, once all of them had ended: only then is a row
        late.
        """
        starts = [self.start(time)]
        if self.puts_hops_aside and isinstance(self.window, EventWindow):
            count = self.window.length // self.window.slide
            starts = [starts[0] - back * self.window.slide for back in reversed(range(count))]
        return [one for one in starts if watermark is not None and self.end(one) <= watermark]

    def is_late(self, time: int, watermark: int | None) -> bool:
        """Return whether a row is late for any window."""
        return bool(self.late_starts(time, watermark))

    @property
    def _length(self) -> int:
        return 0 if isinstance(self.window, Bound) else self.window.length

    @property
    def rest(self) -> int:
        """Return how long after the time in ``shown`` the watermark makes the result's row final.

        A session can grow by a row that is not late as long as its gap lies behind the watermark.
        """
        if self.is_of_sessions:
            return self._length
        return 0 if self.shows_end else self.window.length
