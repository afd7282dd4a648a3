"""Names what this process leaves to Spark."""

from cdc.events.schema import TableSchema
from cdc.lake.table.row_hash import has_floats
from cdc.tables import TableMode


class NotLocalError(Exception):
    """Says why only Spark can apply a batch; raised before anything is written."""


def why_not_local(schema: TableSchema) -> str | None:
    """Return why batches of the table are left to Spark; None if they need not be."""
    if schema.mode is TableMode.MULTISET and has_floats(schema):
        return "it has no key but floats, whose digests only Spark can make"
    return None
