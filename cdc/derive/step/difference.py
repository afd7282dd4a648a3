"""What differs between the rows that a derived table has and those that its query gives.

A row is identified by the digest of its values and, among equal rows, by the number of the copy,
as in a captured table without a key (docs/semantics.md). So no weight can become negative, and the
rows of a table without a key are as exact as others.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from cdc.derive.engine.calculator import Calculator
from cdc.derive.engine.output_types import Output
from cdc.errors import CdcError, ErrorKind
from cdc.events.values.sql_text import postgres_name
from cdc.lake.table.merge_plan import COPY, ROW_HASH

GONE: Final = "_cdc_gone"
"""Of a row of the difference: whether the table has it and the query does not."""
_FRESH: Final = "wal2lake_fresh"
_STORED: Final = "wal2lake_stored"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The rows to add and, by digest and copy alone, those to remove; ``rows`` come out of it."""

    changes: pa.Table  # the columns, ROW_HASH, COPY, and GONE
    rows: int
    added: int
    removed: int


def difference(
    calculator: Calculator,
    query: str,
    outputs: Sequence[Output],
    key: Sequence[str],
    stored: pa.RecordBatchReader | None,
) -> Difference:
    """Calculate the query and compare it with the ``stored`` digests and copies, None for no table.

    Raises TABLE_STOPPED for a query that fails, and for rows with equal keys.
    """
    calculator.run(_fresh(query, outputs))
    _refuse_twins(calculator, key)
    handles = pa.schema([(ROW_HASH, pa.string()), (COPY, pa.int64())])
    calculator.keep(_STORED, handles.empty_table() if stored is None else stored)
    changes = calculator.rows(_changes())
    removed = pa.compute.sum(changes.column(GONE)).as_py() or 0
    ((rows,),) = calculator.values(f"SELECT count(*) FROM {_FRESH}")  # noqa: S608 - our name
    return Difference(
        changes=changes,
        rows=int(str(rows)),
        added=len(changes) - removed,
        removed=removed,
    )


def typed(query: str, outputs: Sequence[Output]) -> str:
    """Return the query with its results in the lake's types."""
    columns = (f"CAST({o.quoted} AS {o.type}) AS {o.quoted}" for o in outputs)
    return f"SELECT {', '.join(columns)} FROM ({query})"  # noqa: S608 - of a checked definition


def _fresh(query: str, outputs: Sequence[Output]) -> str:
    digest = f"SELECT *, {_digest(outputs)} AS {ROW_HASH} FROM ({typed(query, outputs)})"  # noqa: S608
    copy = f"row_number() OVER (PARTITION BY {ROW_HASH})"
    return f"CREATE TABLE {_FRESH} AS SELECT *, {copy} AS {COPY} FROM ({digest})"  # noqa: S608


def _digest(outputs: Sequence[Output]) -> str:
    """Return an expression that is equal for equal rows only.

    The length goes before each value, so that no value reads like the end of another.
    """
    values = (_text(output.quoted, output.type) for output in outputs)
    parts = (f"coalesce(length({value}) || ':' || {value}, 'N')" for value in values)
    return f"sha256({' || '.join(parts)})"


def _text(name: str, kind: str) -> str:
    if kind.endswith("[]"):
        return f"to_json({name})::VARCHAR"
    return f"hex({name})" if kind == "BLOB" else f"{name}::VARCHAR"


def _changes() -> str:
    by = f"{ROW_HASH}, {COPY}"
    return (
        f"SELECT *, false AS {GONE} FROM {_FRESH} ANTI JOIN {_STORED} USING ({by}) "  # noqa: S608
        f"UNION ALL BY NAME "
        f"SELECT {by}, true AS {GONE} FROM {_STORED} ANTI JOIN {_FRESH} USING ({by})"
    )


def _refuse_twins(calculator: Calculator, key: Sequence[str]) -> None:
    if not key:
        return
    listed = ", ".join(map(postgres_name, key))
    twins = calculator.values(
        f"SELECT count(*) FROM {_FRESH} GROUP BY {listed} HAVING count(*) > 1 LIMIT 1"  # noqa: S608
    )
    if twins:
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            f"its key ({', '.join(key)}) is not unique: {twins[0][0]} rows have the same",
            remedy="name the columns in key that tell its rows apart",
        )
