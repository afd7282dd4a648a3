"""Finds what differs between the rows that a derived table has and those that its query gives.

A row is identified by the digest of its values and, among equal rows, by the number of the copy,
as in a captured table without a key (docs/semantics.md). So no weight can become negative, and the
rows of a table without a key are as exact as others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from cdc.derive.engine.calculator import Calculator
from cdc.derive.engine.digest import digest
from cdc.derive.engine.numbered import keep_numbered
from cdc.derive.engine.output_types import Output
from cdc.derive.scope.scope import DIRTY, SCHEMA, column
from cdc.errors import CdcError, ErrorKind
from cdc.events.values.sql_text import postgres_name
from cdc.lake.table.merge_plan import COPY, ROW_HASH

GONE: Final = "_cdc_gone"
"""Of a row of the difference: whether the table has it and the query does not."""
FRESH: Final = "wal2lake_fresh"
STORED: Final = "wal2lake_stored"
_INSIDE: Final = "wal2lake_stored_inside"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Holds the rows to add and, by digest and copy alone, those to remove.

    ``rows`` is how many rows the table has then.
    """

    changes: pa.Table  # the columns, ROW_HASH, COPY, and GONE
    rows: int
    added: int
    removed: int


def difference(
    calculator: Calculator,
    query: str,
    outputs: Sequence[Output],
    key: Sequence[str],
    stored: pa.RecordBatchReader | str | None,
) -> Difference:
    """Calculate the query and compare it with the ``stored`` digests and copies.

    They are given as rows, or as the name of a table that has them; None if nothing is stored.
    Raises TABLE_STOPPED for a query that fails, and for rows with equal keys.
    """
    keep_fresh(calculator, query, outputs)
    refuse_twins(calculator, key, FRESH)
    if isinstance(stored, str):
        return _compared(calculator, stored, others=0)
    handles = pa.schema([(ROW_HASH, pa.string()), (COPY, pa.int64())])
    calculator.keep(STORED, handles.empty_table() if stored is None else stored)
    return _compared(calculator, STORED, others=0)


def scoped_difference(
    calculator: Calculator,
    query: str,
    outputs: Sequence[Output],
    key: Sequence[str],
    *,
    scope: Sequence[str],
    stored: str,
) -> Difference:
    """Calculate the query for the values in DIRTY, and compare it with the stored rows of these.

    ``stored`` names a table that has the digest, the copy, and the columns of the scope key and of
    the key, of all rows. Raises TABLE_STOPPED as ``difference`` does.
    """
    keep_fresh(calculator, query, outputs)
    equal = (
        f"d.{column(n)} IS NOT DISTINCT FROM s.{postgres_name(c)}" for n, c in enumerate(scope)
    )
    others = f"FROM {stored} AS s {{}} JOIN {SCHEMA}.{DIRTY} AS d ON {' AND '.join(equal)}"
    calculator.run(f"CREATE TABLE {_INSIDE} AS SELECT s.* {others.format('SEMI')}")
    compared = FRESH
    if key and not set(scope) <= set(key):
        listed = ", ".join(map(postgres_name, key))
        outside = f"SELECT {listed} {others.format('ANTI')}"
        compared = f"(SELECT {listed} FROM {FRESH} UNION ALL {outside})"  # noqa: S608
    refuse_twins(calculator, key, compared)
    left = calculator.count(stored) - calculator.count(_INSIDE)
    return _compared(calculator, _INSIDE, others=left)


def handles(changes: pa.Table) -> set[tuple[object, ...]]:
    """Return the digest and copy of each changed row, and whether it is gone."""
    return set(zip(*(changes.column(n).to_pylist() for n in (ROW_HASH, COPY, GONE)), strict=True))


def refuse_other_rows(cut: int, scoped: Difference, whole: Difference) -> None:
    """Raise TABLE_STOPPED if a step by the scope key differs from the whole query at its cut."""
    wrong = len(handles(whole.changes) ^ handles(scoped.changes))
    if wrong:
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            f"a scoped step to cut {cut} has {wrong:,} other rows than its query",
            remedy="this is a bug of wal2lake: set refresh: full in the definition, report it",
        )


def _compared(calculator: Calculator, stored: str, *, others: int) -> Difference:
    changes = calculator.rows(_changes(stored))
    added, removed = counts(changes)
    rows = calculator.count(FRESH) + others
    return Difference(changes=changes, rows=rows, added=added, removed=removed)


def counts(changes: pa.Table) -> tuple[int, int]:
    """Return how many rows of a difference are added, and how many are removed."""
    removed: int = pa.compute.sum(changes.column(GONE)).as_py() or 0
    return len(changes) - removed, removed


def typed(query: str, outputs: Sequence[Output]) -> str:
    """Return the query with its results in the lake's types."""
    columns = (f"CAST({o.quoted} AS {o.type}) AS {o.quoted}" for o in outputs)
    return f"SELECT {', '.join(columns)} FROM ({query})"  # noqa: S608 - of a checked definition


def keep_fresh(calculator: Calculator, query: str, outputs: Sequence[Output]) -> None:
    """Create the table FRESH of the query's rows, with their digests and copies."""
    digested = f"SELECT *, {digest(outputs)} AS {ROW_HASH} FROM ({typed(query, outputs)})"  # noqa: S608
    keep_numbered(calculator, FRESH, digested, ROW_HASH, COPY)


def _changes(stored: str) -> str:
    by = f"{ROW_HASH}, {COPY}"
    return (
        f"SELECT *, false AS {GONE} FROM {FRESH} ANTI JOIN {stored} USING ({by}) "  # noqa: S608
        f"UNION ALL BY NAME "
        f"SELECT {by}, true AS {GONE} FROM {stored} ANTI JOIN {FRESH} USING ({by})"
    )


def refuse_twins(calculator: Calculator, key: Sequence[str], rows: str) -> None:
    """Raise TABLE_STOPPED if two of these rows have the same key."""
    if not key:
        return
    listed = ", ".join(map(postgres_name, key))
    twins = calculator.values(
        f"SELECT count(*) FROM {rows} GROUP BY {listed} HAVING count(*) > 1 LIMIT 1"  # noqa: S608
    )
    if twins:
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            f"its key ({', '.join(key)}) is not unique: {twins[0][0]} rows have the same",
            remedy="name the columns in key that tell its rows apart",
        )
