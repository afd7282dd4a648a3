"""Makes the rows of a table of late rows: those of the input, and what became of them."""

from collections.abc import Sequence

import pyarrow as pa

from cdc.derive.engine.late_facts import FACTS
from cdc.derive.late.late_rows import LateRow
from cdc.errors import CdcError, ErrorKind


def rows_table(columns: pa.Schema, rows: Sequence[LateRow], cut: int) -> pa.Table:
    """Return late rows that a cut has; raises TABLE_STOPPED if a column has one of our names."""
    taken = sorted(set(columns.names) & set(FACTS.names))
    if taken:
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            f"its input has a column {taken[0]}, which late rows have for themselves",
            remedy="remove late from the definition, or rename the column in the source",
        )
    images = zip(*(row.row.values for row in rows), strict=True) if rows else [()] * len(columns)
    facts = zip(*(_facts(row, cut) for row in rows), strict=True) if rows else [()] * len(FACTS)
    arrays = [
        pa.array(list(values), field.type)
        for field, values in zip([*columns, *FACTS], [*images, *facts], strict=True)
    ]
    return pa.table(arrays, schema=pa.schema([*columns, *FACTS]))


def _facts(row: LateRow, cut: int) -> tuple[object, ...]:
    times = (row.start, row.end, row.watermark)
    return (row.op, row.effect.value, *times, cut, row.lsn, row.offset, None, None)
