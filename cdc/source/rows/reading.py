"""Write a table's rows, as the connection's transaction sees them, to a Delta table of strings.

The Delta table has string columns ``c0, c1, ..``, one per column of the source, in the spelling of
``cdc/source/rows/spelling.py``; ``cdc/operations/resnapshot/values.py`` turns them into values. The
caller chooses the snapshot, and has the session print by ``cdc/source/server/printing.py``.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from psycopg import sql

from cdc.events.structure.declared import SourceColumn
from cdc.source.rows.by_key import key_columns, rows_of_keys
from cdc.source.rows.copy import own_rows, select_list
from cdc.source.rows.writing import BATCH_BYTES, ReadRows, Tell, Writing
from cdc.source.server.connection import Connection
from cdc.tables import TableId

KEYS: Final = 1000
"""Number of keys per query: few enough for Postgres to look up each of them in the index."""


def read(
    connection: Connection,
    table: TableId,
    columns: Sequence[SourceColumn],
    path: str,
    *,
    where: sql.Composable | None = None,
    tell: Tell = lambda *_: None,
    batch_bytes: int = BATCH_BYTES,
) -> ReadRows:
    """Write the rows, or those matching ``where``, to a new Delta table at ``path``.

    An existing table is replaced. ``columns`` are the captured columns, in the order of the string
    columns. Raises SOURCE_NOT_READY, TIMEOUT or UNREACHABLE like ``translated``, and whatever
    ``tell`` raises; afterwards the connection's transaction has ended.
    """
    query = sql.SQL("SELECT {} FROM {}").format(select_list(columns), own_rows(table))
    if where is not None:
        query = sql.SQL("{} WHERE {}").format(query, where)
    writing = Writing(connection, table, columns, tell, batch_bytes)
    writing.begin(path)
    writing.add([query])
    return writing.read_rows


def read_keys(  # noqa: PLR0917 - source, selection and destination
    connection: Connection,
    table: TableId,
    columns: Sequence[SourceColumn],
    key_names: Sequence[str],
    keys: Iterable[Sequence[str]],
    path: str,
    *,
    tell: Tell = lambda *_: None,
    batch_bytes: int = BATCH_BYTES,
) -> ReadRows:
    """Append the rows with these keys to the Delta table at ``path``, which is created if missing.

    A key has one string per name in ``key_names``, as made by ``spelled.key_texts``. Keys that the
    table lacks add nothing. Strings that are the same key for Postgres (``1.0`` and ``1.00``, or
    duplicates) add its row once per thousand keys in which they occur. At most a thousand keys are
    held in memory.

    Raises like ``read``, and SOURCE_NOT_READY also if the table has no unique index on exactly
    these columns, or a string is not a value of its column.
    """
    key = key_columns(connection, table, key_names)
    writing = Writing(connection, table, columns, tell, batch_bytes)
    writing.begin(path, replace=False)
    writing.add(rows_of_keys(table, columns, key, some) for some in _thousands(keys))
    return writing.read_rows


def _thousands(keys: Iterable[Sequence[str]]) -> Iterator[list[Sequence[str]]]:
    remaining = iter(keys)
    while some := list(islice(remaining, KEYS)):
        yield some
