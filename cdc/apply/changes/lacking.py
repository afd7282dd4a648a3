"""Find writer schemas that lack a column of the table, which the connector did not read. Pure.

Both ways of applying ask this before a batch, and stop the table for the same events.
"""

from collections.abc import Collection, Mapping
from typing import Final

from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import row_fields
from cdc.events.structure.steps import READ_AGAIN
from cdc.events.structure.structure import Structure

PASSED_OVER: Final = "r"
"""Rows that a snapshot read have the columns of a later moment; a later note explains them."""


def lacking(schemas: Mapping[int, str], structure: Structure) -> dict[int, list[str]]:
    """Return the columns that each writer schema lacks, by id; schemas with all are left out."""
    return {number: names for number in schemas if (names := _missing(schemas[number], structure))}


def stopped(missing: Mapping[int, Collection[str]]) -> CdcError:
    """Return the error that stops the table because of a change that lacks some of the columns."""
    columns = sorted({name for names in missing.values() for name in names})
    return CdcError(
        ErrorKind.TABLE_STOPPED,
        f"a change arrived without {', '.join(columns)}: the column's type changed before the "
        "connector had read its earlier values, or the connector was told to leave it out",
        remedy=READ_AGAIN,
    )


def _missing(schema: str, structure: Structure) -> list[str]:
    written = {field.column.name for field in row_fields(schema)}
    return [column.name for column in structure.followed if column.name not in written]
