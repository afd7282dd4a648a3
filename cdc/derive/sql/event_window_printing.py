"""Print a table in windows of event time as plain SQL.

Times are counted in microseconds since 1970 and lengths are constant, so that neither the session's
time zone nor an engine's first day of a week has a part in it. The columns that this adds begin
with ``_cdc_``: no definition can name them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from cdc.derive.sql.event_window import EventWindow
from cdc.events.values.sql_text import postgres_name

ROW: Final = '"_cdc_row"'
_SECOND: Final = 1_000_000
_START, _END = '"window_start"', '"window_end"'
_STEP, _BEGINS, _SESSION = '"_cdc_step"', '"_cdc_begins"', '"_cdc_session"'


@dataclass(frozen=True, slots=True)
class Spelling:
    """Says how an engine writes what is not the same in all."""

    microseconds: Callable[[str], str]
    """The microseconds since 1970 of a time; the argument is the name of a column of ROW."""
    interval: Callable[[str], str]
    """An interval of so many microseconds; the argument is a text in SQL."""
    series: Callable[[int], str] = lambda last: f"GENERATE_SERIES(0, {last})"
    """A table of the whole numbers from 0 to the argument, both included."""


def printed(window: EventWindow, table: str, spelling: Spelling) -> str:
    """Return a subquery in parentheses: all columns of the table, window_start and window_end."""
    sessions = window.form == "sessions"
    return f"({(_sessions if sessions else _aligned)(window, table, spelling)})"


def _aligned(window: EventWindow, table: str, spelling: Spelling) -> str:
    count, slide = window.length // window.slide, window.slide
    since = f"{spelling.microseconds(window.time)} + ({-window.origin})"
    back = f"(({since}) % {slide} + {slide}) % {slide}"
    back = back if count == 1 else f"{back} + CAST({_STEP} AS BIGINT) * {slide}"
    start = f"{_time(window)} - {spelling.interval(f'({back})')}"
    added = f"{start} AS {_START}, {start} + {_constant(window.length)} AS {_END}"
    return f"SELECT {ROW}.*, {added} FROM {_rows(window, table, spelling, count)}"  # noqa: S608


def _rows(window: EventWindow, table: str, spelling: Spelling, count: int = 1) -> str:
    """Return the rows that have a time, each ``count`` times.

    A table that has columns of the names that are added is ambiguous in the condition of the join,
    which makes every engine refuse it; otherwise one of them would take its columns for the added.
    """
    names = f"TRUE AS {_START}, TRUE AS {_END}"
    steps = f" FROM {spelling.series(count - 1)} AS s({_STEP})" if count > 1 else ""
    listed = f"{_STEP}, {names}" if count > 1 else names
    added = f'(SELECT {listed}{steps}) AS "_cdc_window"'
    condition = f"ON {_START} AND {_END} WHERE {_time(window)} IS NOT NULL"
    return f"{table} AS {ROW} JOIN {added} {condition}"


def _sessions(window: EventWindow, table: str, spelling: Spelling) -> str:
    """A session begins at a row that is more than the gap after the one before.

    Rows at one time get one number, as the sum reaches to the last of them.
    """
    time, keys = _time(window), [_column(key) for key in window.keys]
    now = spelling.microseconds(window.time)
    near = f"{now} - LAG({now}) OVER ({_over(keys, time)}) <= {window.length}"
    begins = f"CASE WHEN {near} THEN 0 ELSE 1 END AS {_BEGINS}"
    first = f"SELECT {ROW}.*, {begins} FROM {_rows(window, table, spelling)}"  # noqa: S608
    number = f"SUM({ROW}.{_BEGINS}) OVER ({_over(keys, time)}) AS {_SESSION}"
    second = f"SELECT {ROW}.*, {number} FROM ({first}) AS {ROW}"  # noqa: S608
    session = _over([*keys, f"{ROW}.{_SESSION}"], "")
    start = f"MIN({time}) OVER ({session}) AS {_START}"
    end = f"MAX({time}) OVER ({session}) + {_constant(window.length)} AS {_END}"
    return f"SELECT {ROW}.*, {start}, {end} FROM ({second}) AS {ROW}"  # noqa: S608


def _over(parts: Sequence[str], order: str) -> str:
    partition = f"PARTITION BY {', '.join(parts)}" if parts else ""
    return f"{partition}{f' ORDER BY {order} ASC NULLS LAST' if order else ''}".strip()


def _time(window: EventWindow) -> str:
    return _column(window.time)


def _column(name: str) -> str:
    return f"{ROW}.{postgres_name(name)}"


def _constant(length: int) -> str:
    return f"INTERVAL '{length // _SECOND}' SECOND"
