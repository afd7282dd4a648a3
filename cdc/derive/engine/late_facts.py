"""Defines the columns that a table of late rows has beside those of the input."""

from typing import Final

import pyarrow as pa

from cdc.derive.engine.calculator import Calculator, named
from cdc.derive.late.late_rows import CUT, EFFECT, OFFSET
from cdc.derive.late.rule import END, START, Bound, LateRule
from cdc.derive.late.watermark import refuse_no_moment
from cdc.errors import ErrorKind

_TIME: Final = pa.timestamp("us", "UTC")
ADMITTED_AT: Final = "_admitted_at"
REASON: Final = "_reason"
"""Columns of a row that says what was admitted, when and why; NULL in all others."""
FACTS: Final = pa.schema(
    [
        ("_op", pa.string()),
        (EFFECT, pa.string()),
        (START, _TIME),
        (END, _TIME),
        ("_watermark", _TIME),
        (CUT, pa.int64()),
        ("_lsn", pa.int64()),
        (OFFSET, pa.int64()),
        (ADMITTED_AT, _TIME),
        (REASON, pa.string()),
    ]
)


def declare_late_rows(database: Calculator, rule: LateRule) -> None:
    """Create what the query of late rows of a loaded table reads, without rows.

    Raises CONFIG if rows wait for it by a column that is no moment.
    """
    if isinstance(rule.window, Bound):
        types = dict(database.types(f"SELECT * FROM {named(rule.table)}"))  # noqa: S608
        refuse_no_moment(rule, types.get(rule.window.time), ErrorKind.CONFIG)
    database.run('CREATE SCHEMA IF NOT EXISTS "_cdc_late"')
    database.keep('"_cdc_late"."facts"', FACTS.empty_table())
    columns = f'SELECT * FROM {named(rule.table)}, "_cdc_late"."facts" LIMIT 0'  # noqa: S608 - our names
    database.run(f'CREATE OR REPLACE TABLE "_cdc_late"."rows" AS {columns}')
    database.run('DROP TABLE "_cdc_late"."facts"')
