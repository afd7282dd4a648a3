"""Reads the rows of a table in the order of their numbers, some at a time.

No query is open in between, so that others can run and what is found can be written.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from cdc.derive.engine.calculator import Calculator


def in_order(
    database: Calculator, table: str, number: str, columns: Sequence[str], chunk: int
) -> Iterator[tuple[Any, ...]]:
    """Yield the columns of every row, which the column ``number`` counts from 1.

    All names are SQL. ``chunk`` rows at a time are in memory.
    """
    listed, begin = ", ".join(columns), 1
    while True:
        between = f"BETWEEN {begin} AND {begin + chunk - 1}"
        query = f"SELECT {listed} FROM {table} WHERE {number} {between} ORDER BY {number}"  # noqa: S608
        read = database.rows(query)
        yield from zip(*(column.to_pylist() for column in read.columns), strict=True)
        if len(read) < chunk:
            return
        begin += chunk
