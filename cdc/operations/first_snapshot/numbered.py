"""Decides whether the copies of equal rows of a table without a key can be numbered as it is read.

``cdc/operations/resnapshot/copies.py`` numbers them.
"""

from typing import Final

from cdc.apply.local.not_local import why_not_local
from cdc.events.schema import TableSchema
from cdc.operations.first_snapshot.page_range import page_ranges
from cdc.tables import TableMode

MOST_PAGES: Final = 1_024
"""Of a table whose digests one reader keeps in memory: 8 MB, at most some 250,000 rows."""


def can_be_numbered(schema: TableSchema, pages: int) -> bool:
    """Return whether copies need no numbers, or one reader can give them; otherwise Spark does.

    ``pages`` is the table's size in the source.
    """
    if schema.mode is not TableMode.MULTISET:
        return True
    one_reader = pages <= MOST_PAGES and len(page_ranges(pages)) == 1
    return one_reader and why_not_local(schema) is None
