"""Write a table's rows, as the connection's transaction sees them, to a Delta table of strings.

The Delta table has string columns ``c0, c1, ..``, one per column of the source, in the spelling of
``cdc/source/rows/spelling.py``; ``cdc/operations/resnapshot/values.py`` turns them into values. The
caller chooses the snapshot, and has the session print by ``cdc/source/server/printing.py``.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, WriterProperties, write_deltalake
from psycopg import sql

from cdc.errors import CdcError, ErrorKind
from cdc.events.structure.declared import SourceColumn
from cdc.source.rows.copy import blocks, expression, names, own_rows, parsed
from cdc.source.rows.spelling import respelling, spelling
from cdc.source.server.connection import Connection, translated
from cdc.tables import TableId

BATCH_BYTES: Final = 8 << 20
_FILE_BYTES: Final = 64 << 20  # of a Parquet file, about; no more of it is in memory
_GROUPED: Final = WriterProperties(max_row_group_size=10_000)
KEYS: Final = 1000
"""Number of keys per query: few enough for Postgres to look up each of them in the index."""

Tell = Callable[[int, int, int], None]
"""Called after each chunk with chunks, rows and bytes so far; an exception ends the reading."""

_UNINDEXED: Final = {"delta.dataSkippingNumIndexedCols": "0"}
"""No statistics: the strings are read once and whole, so minima and maxima would be useless."""

_KEY: Final = """
WITH RECURSIVE key AS (
  SELECT a.attname AS name, a.atttypid AS type, x.indclass[k.place - 1] AS class,
         x.indisprimary AS is_primary, x.indexrelid AS index
    FROM pg_index x, unnest(x.indkey) WITH ORDINALITY k(number, place), pg_attribute a
   WHERE x.indrelid = format('%%I.%%I', %(schema)s::text, %(table)s::text)::regclass
     AND x.indisunique AND x.indisvalid AND x.indpred IS NULL AND k.place <= x.indnkeyatts
     AND a.attrelid = x.indrelid AND a.attnum = k.number
     AND (SELECT array_agg(m.attname::text ORDER BY m.attname::text)
            FROM unnest(x.indkey) WITH ORDINALITY n(number, place), pg_attribute m
           WHERE n.place <= x.indnkeyatts AND m.attrelid = x.indrelid AND m.attnum = n.number
         ) = (SELECT array_agg(w ORDER BY w) FROM unnest(%(names)s::text[]) w)
), over AS (
  SELECT key.*, t.typtype, t.typbasetype FROM key JOIN pg_type t ON t.oid = key.type
  UNION ALL
  SELECT o.name, t.oid, o.class, o.is_primary, o.index, t.typtype, t.typbasetype
    FROM over o JOIN pg_type t ON t.oid = o.typbasetype WHERE o.typtype = 'd'
)
SELECT DISTINCT ON (o.name) o.name, format_type(o.type, -1), n.nspname, p.oprname
  FROM over o
  JOIN pg_opclass c ON c.oid = o.class
  JOIN pg_amop m ON m.amopfamily = c.opcfamily AND m.amoplefttype = c.opcintype
       AND m.amoprighttype = c.opcintype AND m.amopstrategy = 3
  JOIN pg_operator p ON p.oid = m.amopopr
  JOIN pg_namespace n ON n.oid = p.oprnamespace
 WHERE o.typtype <> 'd'
 ORDER BY o.name, o.is_primary DESC, o.index
"""
"""For each column of a key: its type without a length, because a cast would cut longer strings, and
the operator of its index, which for an extension's type is not in our search path.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRows:
    """The size of a reading: ``bytes`` as sent by Postgres, ``chunks`` of about a batch each."""

    rows: int = 0
    bytes: int = 0
    chunks: int = 0


@dataclass(frozen=True, slots=True)
class _KeyColumn:
    name: str
    type: str  # as SQL writes it
    operator: tuple[str, str]  # schema and name

    def value(self, text: sql.Composable) -> sql.Composed:
        """Return SQL that casts ``text`` to the column's type.

        Money is cast by way of numeric, because its text depends on the locale.
        """
        number = "::numeric" if self.type == "money" else ""
        return sql.SQL("{}{}::{}").format(text, sql.SQL(number), sql.SQL(self.type))

    def equals(self, left: sql.Composable, right: sql.Composable) -> sql.Composed:
        """Return SQL that compares two values with the equality operator of the index."""
        schema, name = self.operator
        operator = sql.SQL("OPERATOR({}.{})").format(sql.Identifier(schema), sql.SQL(name))
        return sql.SQL("{} {} {}").format(left, operator, right)


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
    query = sql.SQL("SELECT {} FROM {}").format(_texts(columns), own_rows(table))
    if where is not None:
        query = sql.SQL("{} WHERE {}").format(query, where)
    writing = _Writing(connection, table, columns, tell, batch_bytes)
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
    key = _key(connection, table, key_names)
    writing = _Writing(connection, table, columns, tell, batch_bytes)
    writing.begin(path, replace=False)
    writing.add(_of_keys(table, columns, key, some) for some in _thousands(keys))
    return writing.read_rows


def _thousands(keys: Iterable[Sequence[str]]) -> Iterator[list[Sequence[str]]]:
    remaining = iter(keys)
    while some := list(islice(remaining, KEYS)):
        yield some


class _Writing:
    """A writer of one reading in one commit, with only a few chunks in memory at a time."""

    def __init__(
        self,
        connection: Connection,
        table: TableId,
        columns: Sequence[SourceColumn],
        tell: Tell,
        batch: int,
    ) -> None:
        self.read_rows = ReadRows()
        self._connection = connection
        self._doing = f"reading {table}"
        self._columns = dict(zip(names(len(columns)), columns, strict=True))
        self._tell = tell
        self._batch = batch
        self._ended_by: BaseException | None = None

    def begin(self, path: str, *, replace: bool = True) -> None:
        """Create the Delta table, even if no row follows, or open it if not ``replace``."""
        if not replace and DeltaTable.is_deltatable(path):
            self._texts = DeltaTable(path)
            return
        fields = pa.schema([(name, pa.string()) for name in self._columns])
        self._texts = DeltaTable.create(path, fields, mode="overwrite", configuration=_UNINDEXED)

    def add(self, queries: Iterable[sql.Composable]) -> None:
        """Append the rows of all queries, in one commit."""
        schema = pa.schema([(name, pa.large_string()) for name in self._columns])
        with closing(self._batches(queries)) as batches:
            reader = pa.RecordBatchReader.from_batches(schema, batches)
            try:
                write_deltalake(
                    self._texts,
                    reader,
                    mode="append",
                    target_file_size=_FILE_BYTES,
                    writer_properties=_GROUPED,
                )
            except Exception:
                # The writer's exception carries only the text of the original one.
                if self._ended_by is not None:
                    raise self._ended_by from None
                raise

    def _batches(self, queries: Iterable[sql.Composable]) -> Generator[pa.RecordBatch]:
        try:
            for query in queries:
                yield from self._read(query)
        except GeneratorExit:
            raise
        except BaseException as error:
            self._ended_by = error
            raise

    def _read(self, query: sql.Composable) -> Iterator[pa.RecordBatch]:
        csv = blocks(self._connection, query, self._doing, block_bytes=self._batch)
        with closing(csv):
            for block in csv:
                rows = self._respelled(parsed(block, list(self._columns)))
                yield from rows.to_batches()
                self._count(rows.num_rows, len(block))

    def _count(self, rows: int, size: int) -> None:
        self.read_rows = ReadRows(
            rows=self.read_rows.rows + rows,
            bytes=self.read_rows.bytes + size,
            chunks=self.read_rows.chunks + 1,
        )
        self._tell(self.read_rows.chunks, self.read_rows.rows, self.read_rows.bytes)

    def _respelled(self, rows: pa.Table) -> pa.Table:
        for place, (name, column) in enumerate(self._columns.items()):
            if (respelled := respelling(column.pg)) is not None:
                texts = rows.column(name).to_pylist()
                spelled = [None if text is None else respelled(text) for text in texts]
                rows = rows.set_column(place, name, pa.array(spelled, rows.column(name).type))
        return rows


def _texts(columns: Sequence[SourceColumn], *of: str) -> sql.Composed:
    return sql.SQL(", ").join(
        expression(sql.Identifier(*of, column.name), spelling(column.pg)) for column in columns
    )


def _of_keys(
    table: TableId,
    columns: Sequence[SourceColumn],
    key: Sequence[_KeyColumn],
    keys: Sequence[Sequence[str]],
) -> sql.Composed:
    """Select the rows of these keys; DISTINCT uses each type's own equality."""
    places = [sql.Identifier(name) for name in names(len(key))]
    values = [
        sql.SQL("{} AS {}").format(column.value(place), place)
        for column, place in zip(key, places, strict=True)
    ]
    texts = [
        sql.SQL("{}::text[]").format(sql.Literal(list(column)))
        for column in zip(*keys, strict=True)
    ]
    same = [
        column.equals(sql.Identifier("t", column.name), sql.SQL("k.{}").format(place))
        for column, place in zip(key, places, strict=True)
    ]
    return sql.SQL(
        "SELECT {} FROM {} t JOIN (SELECT DISTINCT {} FROM unnest({}) u({})) k ON {}"
    ).format(
        _texts(columns, "t"),
        own_rows(table),
        sql.SQL(", ").join(values),
        sql.SQL(", ").join(texts),
        sql.SQL(", ").join(places),
        sql.SQL(" AND ").join(same),
    )


def _key(
    connection: Connection, table: TableId, key_names: Sequence[str]
) -> tuple[_KeyColumn, ...]:
    values = {"schema": table.schema, "table": table.name, "names": list(key_names)}
    with translated(f"reading the key of {table}"):
        rows = connection.execute(_KEY.encode(), values).fetchall()
    columns = {
        name: _KeyColumn(name, kind, (schema, operator)) for name, kind, schema, operator in rows
    }
    if not key_names or set(columns) != set(key_names):
        raise CdcError(
            ErrorKind.SOURCE_NOT_READY,
            f"{table} has no unique index on exactly these columns: {', '.join(key_names)}",
            remedy="resnapshot the whole table",
        )
    return tuple(columns[name] for name in key_names)
