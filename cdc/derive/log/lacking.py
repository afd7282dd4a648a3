"""Refuse events that were written without columns which their table has now. Pure."""

from collections.abc import Collection, Mapping

from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import envelope_reader, row_fields
from cdc.tables import TableId


class LackingColumnsError(CdcError):
    """Says that events do not tell what was in a column: only the table has that, for now."""


def refuse_lacking(table: TableId, wanted: Collection[str], schemas: Mapping[int, str]) -> None:
    """Raise LackingColumnsError if a writer's schema lacks one of the wanted columns."""
    for text in schemas.values():
        if envelope_reader(text) is None:
            continue
        missing = sorted(set(wanted) - {field.column.name for field in row_fields(text)})
        if missing:
            raise LackingColumnsError(
                ErrorKind.TABLE_STOPPED,
                f"events of {table} were written without {', '.join(missing)}",
                remedy="give the definition another name: the new history begins at the next cut, "
                "and the old one stays as it is",
            )
