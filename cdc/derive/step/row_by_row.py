"""Finds what differs where each row of a query is made of one row of its table.

Then the query over the changed rows alone has all rows that have come and gone. Of equal rows only
the number is known: the highest copies go, and new ones get the next numbers.
"""

from collections.abc import Sequence
from typing import Final

from cdc.derive.engine.calculator import Calculator
from cdc.derive.engine.digest import digest
from cdc.derive.engine.output_types import Output
from cdc.derive.scope.scope import SCHEMA
from cdc.derive.step.changes import net_rows
from cdc.derive.step.difference import (
    FRESH,
    GONE,
    Difference,
    counts,
    keep_fresh,
    refuse_twins,
    typed,
)
from cdc.derive.step.reach import restrict
from cdc.errors import CdcError, ErrorKind
from cdc.events.values.sql_text import postgres_name
from cdc.lake.table.merge_plan import COPY, ROW_HASH
from cdc.tables import TableId

_LEFT: Final = "wal2lake_left"  # digests of the rows that are made of removed ones
_MOVED: Final = "wal2lake_moved"  # by digest: copies there, and how many more or fewer
_CHANGES: Final = "wal2lake_changes"


def row_difference(
    calculator: Calculator,
    query: str,
    outputs: Sequence[Output],
    key: Sequence[str],
    *,
    table: TableId,
    stored: str,
) -> Difference:
    """Calculate the query for the ``net_rows`` of its table, and what that changes.

    ``stored`` names a table that has the digest, the copy and the key of all rows. Raises
    TABLE_STOPPED as ``difference`` does, and where the table lacks rows that are to go.
    """
    gone_rows, new_rows = net_rows(table)
    calculator.run(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    restrict(calculator, 0, gone_rows)
    gone = f"SELECT {digest(outputs)} AS {ROW_HASH} FROM ({typed(query, outputs)})"  # noqa: S608 - of a checked definition
    calculator.run(f"CREATE TABLE {_LEFT} AS {gone}")
    restrict(calculator, 0, new_rows)
    keep_fresh(calculator, query, outputs)
    calculator.run(f"CREATE TABLE {_MOVED} AS {_moved(stored)}")
    _refuse_missing(calculator)
    calculator.run(f"CREATE TABLE {_CHANGES} AS {_changes(stored)}")
    if key:
        refuse_twins(calculator, key, _near(stored, key))
    changes = calculator.rows(f"SELECT * FROM {_CHANGES}")  # noqa: S608 - our name
    added, removed = counts(changes)
    rows = calculator.count(stored) + added - removed
    return Difference(changes=changes, rows=rows, added=added, removed=removed)


def _moved(stored: str) -> str:
    each = f"SELECT {ROW_HASH}, 1 AS n FROM {FRESH} UNION ALL SELECT {ROW_HASH}, -1 FROM {_LEFT}"  # noqa: S608
    net = (
        f"SELECT {ROW_HASH}, sum(n)::BIGINT AS more FROM ({each}) "  # noqa: S608 - our names
        f"GROUP BY {ROW_HASH} HAVING sum(n) <> 0"
    )
    return (
        f"SELECT {ROW_HASH}, n.more, count(s.{COPY}) AS there FROM ({net}) AS n "  # noqa: S608
        f"LEFT JOIN {stored} AS s USING ({ROW_HASH}) GROUP BY {ROW_HASH}, n.more"
    )


def _refuse_missing(calculator: Calculator) -> None:
    missing = calculator.count(f"{_MOVED} WHERE there + more < 0")
    if missing:
        what = f"the table lacks {missing} rows that are to go"
        raise CdcError(ErrorKind.TABLE_STOPPED, what)


def _changes(stored: str) -> str:
    return (
        f"SELECT f.* REPLACE (m.there + f.{COPY} AS {COPY}), false AS {GONE} "  # noqa: S608
        f"FROM {FRESH} AS f JOIN {_MOVED} AS m USING ({ROW_HASH}) WHERE f.{COPY} <= m.more "
        f"UNION ALL BY NAME "
        f"SELECT {ROW_HASH}, s.{COPY}, true AS {GONE} FROM {stored} AS s "
        f"JOIN {_MOVED} AS m USING ({ROW_HASH}) WHERE s.{COPY} > m.there + m.more"
    )


def _near(stored: str, key: Sequence[str]) -> str:
    """Return the keys of the new rows, and of the rows that stay and have one of them."""
    names = [postgres_name(name) for name in key]
    listed = ", ".join(names)
    equal = " AND ".join(f"s.{name} IS NOT DISTINCT FROM c.{name}" for name in names)
    new = f"SELECT {listed} FROM {_CHANGES} WHERE NOT {GONE}"  # noqa: S608 - our names
    gone = f"SELECT {ROW_HASH}, {COPY} FROM {_CHANGES} WHERE {GONE}"  # noqa: S608
    there = f"SELECT s.* FROM {stored} AS s SEMI JOIN ({new}) AS c ON {equal}"  # noqa: S608
    stay = f"SELECT {listed} FROM ({there}) ANTI JOIN ({gone}) USING ({ROW_HASH}, {COPY})"  # noqa: S608
    return f"({new} UNION ALL {stay})"
