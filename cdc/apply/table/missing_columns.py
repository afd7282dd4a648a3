"""Changes whose events lack a column that the table has: the connector was kept from reading it."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.changes.decode import decode_envelope
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import row_fields
from cdc.events.structure.steps import READ_AGAIN
from cdc.events.structure.structure import Structure


def refuse_lacking(part: DataFrame, schemas: Mapping[int, str], structure: Structure) -> None:
    """Raise TABLE_STOPPED where a change of these events lacks a column of the structure.

    ``schemas`` are the writer schemas of the table's events by id. Rows that a snapshot read have
    the columns of a later moment: of one that they lack a note tells that is still to come.
    """
    lacking = {number: names for number in schemas if (names := _lacks(schemas[number], structure))}
    if not lacking:
        return
    some = part.where(F.col("value_schema_id").isin(sorted(lacking)))
    changes = decode_envelope(some, {i: schemas[i] for i in lacking}).where(F.col("op") != "r")
    if not changes.isEmpty():
        names = sorted({name for each in lacking.values() for name in each})
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            f"{', '.join(names)} did not arrive with a change: its type changed before the "
            "connector had read the values of before, or the connector was told to leave it out",
            remedy=READ_AGAIN,
        )


def _lacks(schema: str, structure: Structure) -> list[str]:
    written = {field.column.name for field in row_fields(schema)}
    return [column.name for column in structure.followed if column.name not in written]
