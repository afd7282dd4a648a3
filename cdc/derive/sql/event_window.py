"""Define a window of event time: how the rows of a table in FROM are put into windows."""

from dataclasses import dataclass
from typing import Final, Literal

Form = Literal["tumble", "hop", "sessions"]
ARGUMENT: Final = "event_window"
"""The argument of a table's node that has its EventWindow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventWindow:
    """Describes the window of a table; lengths and times are in microseconds.

    Names are as Postgres has them. A window that tumbles is one that hops by its own length.
    """

    form: Form
    time: str  # the column
    length: int  # of sessions: the gap that ends one
    slide: int = 0  # from one start to the next; 0 for sessions
    origin: int = 0  # the first start from 1970 in UTC on
    keys: tuple[str, ...] = ()  # the columns that sessions are kept apart by
