"""Refuses changes that lack a column of the table: the connector was kept from reading it."""

from collections.abc import Mapping

from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.changes.decode import decode_envelope
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import row_fields
from cdc.events.structure.steps import READ_AGAIN
from cdc.events.structure.structure import Structure
from cdc.land.log_rows import LogRows


def refuse_lacking(part: LogRows, schemas: Mapping[int, str], structure: Structure) -> None:
    """Raise TABLE_STOPPED where a change among these events lacks a column of the structure.

    ``schemas`` are the writer schemas of the table's events, by id. Rows that a snapshot read are
    passed over: they have the columns of a later moment, and a later note explains the difference.
    """
    missing = {i: names for i in schemas if (names := _missing(schemas[i], structure))}
    if not missing:
        return
    suspects = part.frame().where(F.col("value_schema_id").isin(sorted(missing)))
    changes = decode_envelope(suspects, {i: schemas[i] for i in missing}).where(F.col("op") != "r")
    if not changes.isEmpty():
        columns = sorted({name for names in missing.values() for name in names})
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            f"a change arrived without {', '.join(columns)}: the column's type changed before the "
            "connector had read its earlier values, or the connector was told to leave it out",
            remedy=READ_AGAIN,
        )


def _missing(schema: str, structure: Structure) -> list[str]:
    written = {field.column.name for field in row_fields(schema)}
    return [column.name for column in structure.followed if column.name not in written]
