"""Divides a table into ranges of its pages, which several sessions read at the same time.

A row that a snapshot sees stays where it is as long as the snapshot is held: VACUUM does not remove
it, and what rewrites a table needs a lock that a reader's excludes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from psycopg import sql

from cdc.source.server.connection import Connection, translated

_LEAST: Final = 8_192  # pages of a range: 64 MB
_MOST_RANGES: Final = 256
_PAGES: Final = """
SELECT pg_relation_size(%s::oid::regclass) / current_setting('block_size')::bigint,
       greatest((SELECT reltuples FROM pg_class WHERE oid = %s), 0)::bigint
"""


@dataclass(frozen=True, slots=True)
class PageRange:
    """Names the pages from ``first`` up to, but without, ``end``; None means the table's end."""

    first: int = 0
    end: int | None = None

    @property
    def condition(self) -> sql.Composable | None:
        """Return the SQL condition for rows in the range; None for the whole table."""
        parts = []
        if self.first:
            parts.append(sql.SQL("ctid >= {}::tid").format(_tid(self.first)))
        if self.end is not None:
            parts.append(sql.SQL("ctid < {}::tid").format(_tid(self.end)))
        return sql.SQL(" AND ").join(parts) if parts else None


@dataclass(frozen=True, slots=True)
class Extent:
    """Says how many pages a table has, and how many rows by Postgres's own estimate."""

    pages: int
    rows: int


def extent(connection: Connection, oid: int) -> Extent:
    """Return how large the table is now; its children and its large values do not count."""
    with translated("looking at the size of a table"):
        row = connection.execute(_PAGES, (oid, oid)).fetchone()
    return Extent(*row) if row else Extent(0, 0)


def page_ranges(pages: int) -> list[PageRange]:
    """Return ranges that together are the table, also if it grows meanwhile.

    ``pages`` is its size at or after the moment of the snapshot that is read.
    """
    return list(_ranges(pages, max(_LEAST, -(-pages // _MOST_RANGES))))


def _ranges(pages: int, step: int) -> Iterator[PageRange]:
    first = 0
    while first + step < pages:
        yield PageRange(first, first + step)
        first += step
    yield PageRange(first)


def _tid(page: int) -> sql.Literal:
    return sql.Literal(f"({page},0)")
