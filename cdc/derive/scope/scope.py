"""Define the scope of a derived table: how few of its rows a step has to calculate again.

The scope key is a set of output columns that the query keeps together: rows with equal values of
them depend on no others. A step finds the values that changed input rows lead to, and calculates
the query for these alone.
"""

from dataclasses import dataclass
from typing import Final

from cdc.derive.sql.event_window import EventWindow
from cdc.tables import TableId

SCHEMA: Final = "_cdc_scope"
"""The schema of the tables that the queries of a scope read and a step creates."""
DIRTY: Final = "dirty"
"""The table of the scope key's values to calculate again; its columns are those of ``column``."""


def column(number: int) -> str:
    """Return the name that a column of the scope key has in DIRTY."""
    return f"_cdc_scope_{number}"


def restricted(number: int) -> str:
    """Return the name of the table that has an occurrence's rows near a change."""
    return f"rows_{number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """Describes a table at one of the places where a query names it."""

    table: TableId
    name: str  # by which the query calls it
    window: EventWindow | None = None
    is_condition: bool = False  # named in a subquery of WHERE

    @property
    def together(self) -> tuple[str, ...]:
        """Return the columns whose equal values are needed together: the keys of sessions."""
        sessions = self.window is not None and self.window.form == "sessions"
        return self.window.keys if self.window is not None and sessions else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Says which columns of two occurrences must be equal for a row of the join to have both.

    ``columns`` are pairs, of the ``one`` and the ``other`` occurrence.
    """

    one: int
    other: int
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """Describes one SELECT over tables; a query has several if it has set operations."""

    occurrences: tuple[Occurrence, ...]
    links: tuple[Link, ...]
    reached: str
    """Reads the restricted tables; gives the scope key's values of the rows that they join to."""
    is_inner: bool = False
    """Whether more rows in the restricted tables give more values, never fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Holds a scope key, and the queries for DuckDB that use it."""

    columns: tuple[str, ...]
    branches: tuple[Branch, ...]
    query: str
    """The definition's query for the scope keys in DIRTY alone."""
    by_row: str = ""
    """The definition's query over the restricted rows of its one table; empty unless each of its
    rows is made of one row there."""


@dataclass(frozen=True, slots=True)
class Whole:
    """Every row of the table may depend on every row of its inputs."""

    reason: str
