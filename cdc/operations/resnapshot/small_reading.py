"""Reads a small table from the source into memory, at one moment."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from deltalake.exceptions import DeltaError

from cdc.apply.local.arrow import arrow_type
from cdc.apply.local.change import Key
from cdc.apply.local.not_local import NotLocalError, why_not_local
from cdc.errors import CdcError
from cdc.lake.commit.committer import Committer
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.files.unreachable import refuse_silence
from cdc.lake.table.positions import open_table
from cdc.operations.resnapshot.copies import Copies
from cdc.operations.resnapshot.read import refuse_many
from cdc.operations.resnapshot.refused_row import RefusedRow, converted
from cdc.operations.resnapshot.small_keys import held_keys, wanted_rows
from cdc.operations.resnapshot.target import Target
from cdc.source.rows.copied_texts import copied_texts
from cdc.source.server.connection import Connection, translated
from cdc.tables import TableId

MOST_SOURCE_BYTES: Final = 4 << 20
"""Of a table in the source, with its large values: at most some 100,000 rows."""
MOST_LAKE_BYTES: Final = 16 << 20
"""Of a table's data files."""
MOST_TEXT_BYTES: Final = 64 << 20
"""Of what Postgres sends: it may have compressed large values a hundredfold."""
_SIZE: Final = "SELECT pg_table_size(%s::oid::regclass)"


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallReading:
    """Holds the rows of a table at one moment."""

    rows: pa.Table  # in the table's columns; equal rows of a table without a key are numbered
    refused: list[RefusedRow]
    rows_read: int
    keys: frozenset[Key] | None = None  # the rows are those of these keys; None: of the whole table


def is_small(connection: Connection, oid: int, path: str) -> bool:
    """Return whether the source's table and the lake's at ``path`` fit into memory.

    A table of the lake that cannot be read, or to which only Spark may commit, counts as large.
    Raises StoreError as the table's store does.
    """
    with translated("looking at the size of a table"):
        row = connection.execute(_SIZE, (oid,)).fetchone()
    if row is None or row[0] > MOST_SOURCE_BYTES:
        return False
    try:
        files = Committer(path).open().files.values()
        readable = open_table(path) is not None
    except TakeMergeError:
        return False
    except (CdcError, DeltaError, OSError, ValueError) as error:
        refuse_silence(error)
        return False
    return readable and sum(file.size for file in files) <= MOST_LAKE_BYTES


def read_small(
    connection: Connection,
    table: TableId,
    target: Target,
    tell: Callable[[int, int], None],
    keys: Sequence[Sequence[str]] | None = None,
) -> SmallReading:
    """Read the rows of these keys, or all rows, as the connection's transaction sees them.

    A key has the texts of its columns in Postgres's form, as an event's key has them.
    ``tell`` is called with the blocks and the rows so far; it may raise. Raises NotLocalError if
    Spark has to read the table; like ``copied_texts`` for the source; TABLE_STOPPED if too many
    rows are refused.
    """
    if (reason := why_not_local(target.schema)) is not None:
        raise NotLocalError(reason)
    wanted = None if keys is None else wanted_rows(connection, target.schema, keys)
    copies, refused = Copies(target.schema), list[RefusedRow]()
    parts, rows_read, size = [copies.numbered(_no_rows(target))], 0, 0
    blocks = copied_texts(connection, table, target.columns, wanted)
    for number, texts in enumerate(blocks, start=1):
        size += texts.nbytes
        if size > MOST_TEXT_BYTES:
            raise NotLocalError("its values are too large")
        kept, others = converted(texts, target)
        parts.append(copies.numbered(kept.select(target.schema.names)))
        refused += others
        refuse_many([row.reason for row in refused], table)
        rows_read += texts.num_rows
        tell(number, rows_read)
    return SmallReading(
        rows=pa.concat_tables(parts),
        refused=refused,
        rows_read=rows_read,
        keys=None if keys is None else held_keys(target, keys),
    )


def _no_rows(target: Target) -> pa.Table:
    kinds = {column.name: arrow_type(column.type) for column in target.schema.columns}
    return pa.schema(kinds.items()).empty_table()
