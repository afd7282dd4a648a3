"""A table's rows as the connection's transaction sees them, written down as texts.

They go to a Delta table of text columns ``c0, c1, ..``, one per column of the source, in the
spelling of ``cdc/source/rows/spelling.py``; ``cdc/operations/resnapshot/values.py`` makes values of
them. The caller chooses the snapshot, and has the session print by
``cdc/source/server/printing.py``.
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
from cdc.source.rows.copy import alone, blocks, expression, names, parsed
from cdc.source.rows.spelling import respelling, spelling
from cdc.source.server.connection import Connection, translated
from cdc.tables import TableId

BATCH_BYTES: Final = 8 << 20
_FILE_BYTES: Final = 64 << 20  # of Parquet, about; at most so much of it is in memory
_GROUPED: Final = WriterProperties(max_row_group_size=10_000)
KEYS: Final = 1000
"""Asked for at a time: few enough for Postgres to look each of them up in the index."""

Tell = Callable[[int, int, int], None]
"""Hears chunks, rows and bytes so far, after each chunk; what it raises ends the reading."""

_UNINDEXED: Final = {"delta.dataSkippingNumIndexedCols": "0"}
"""The texts are read once, and whole: smallest and largest ones would be counted for nothing."""

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
"""Of each column of a key: its type without a length, which a cast would cut its text to, and the
operator by which its index finds it, which for a type of an extension is in no search path of ours.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRows:
    """What a reading brought: ``bytes`` as Postgres sent them, ``chunks`` of about a batch each."""

    rows: int = 0
    bytes: int = 0
    chunks: int = 0


@dataclass(frozen=True, slots=True)
class _KeyColumn:
    name: str
    type: str  # as SQL writes it
    operator: tuple[str, str]  # schema and name

    def value(self, text: sql.Composable) -> sql.Composed:
        """Money reads its texts by the locale; as a number it is spelled in one way only."""
        number = "::numeric" if self.type == "money" else ""
        return sql.SQL("{}{}::{}").format(text, sql.SQL(number), sql.SQL(self.type))

    def equals(self, left: sql.Composable, right: sql.Composable) -> sql.Composed:
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
    """Write the rows, or those for which ``where`` holds, to a new Delta table at the path.

    What was there before is replaced. ``columns`` are those that arrive, in the order of the texts.
    Raises SOURCE_NOT_READY, TIMEOUT or UNREACHABLE as ``postgres.translated`` does; after an
    error, or what ``tell`` raised, the connection's transaction is over.
    """
    query = sql.SQL("SELECT {} FROM {}").format(_texts(columns), alone(table))
    if where is not None:
        query = sql.SQL("{} WHERE {}").format(query, where)
    writing = _Writing(connection, table, columns, tell, batch_bytes)
    writing.begin(path)
    writing.add([query])
    return writing.found


def read_keys(  # noqa: PLR0917 - what is asked of whom, and where it goes
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
    """Append the rows of these keys to the Delta table at the path, which is made if need be.

    A key is a text for each of ``key_names``, as ``spelled.key_texts`` makes it; one that the
    table does not have brings nothing. Texts that Postgres takes for one key (``1.0`` and
    ``1.00``, or the same one again) bring its row once for each thousand of keys that they stand
    in. No more than a thousand are held.

    Raises SOURCE_NOT_READY also where the table has no unique index of these columns, or a text
    is no value of its column.
    """
    key = _key(connection, table, key_names)
    writing = _Writing(connection, table, columns, tell, batch_bytes)
    writing.begin(path, anew=False)
    writing.add(_of_keys(table, columns, key, asked) for asked in _thousands(keys))
    return writing.found


def _thousands(keys: Iterable[Sequence[str]]) -> Iterator[list[Sequence[str]]]:
    left = iter(keys)
    while asked := list(islice(left, KEYS)):
        yield asked


class _Writing:
    """One commit, however much is read: no more than some chunks of it are in memory."""

    def __init__(
        self,
        connection: Connection,
        table: TableId,
        columns: Sequence[SourceColumn],
        tell: Tell,
        batch: int,
    ) -> None:
        self.found = ReadRows()
        self._connection = connection
        self._doing = f"reading {table}"
        self._columns = dict(zip(names(len(columns)), columns, strict=True))
        self._tell = tell
        self._batch = batch
        self._ended_by: BaseException | None = None

    def begin(self, path: str, *, anew: bool = True) -> None:
        """Also for a table without a row: its columns are wanted."""
        if not anew and DeltaTable.is_deltatable(path):
            self._texts = DeltaTable(path)
            return
        fields = pa.schema([(name, pa.string()) for name in self._columns])
        self._texts = DeltaTable.create(path, fields, mode="overwrite", configuration=_UNINDEXED)

    def add(self, queries: Iterable[sql.Composable]) -> None:
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
                # The writer knows it by its text alone.
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
        found = blocks(self._connection, query, self._doing, block_bytes=self._batch)
        with closing(found):
            for block in found:
                rows = self._respelled(parsed(block, list(self._columns)))
                yield from rows.to_batches()
                self._count(rows.num_rows, len(block))

    def _count(self, rows: int, size: int) -> None:
        self.found = ReadRows(
            rows=self.found.rows + rows,
            bytes=self.found.bytes + size,
            chunks=self.found.chunks + 1,
        )
        self._tell(self.found.chunks, self.found.rows, self.found.bytes)

    def _respelled(self, rows: pa.Table) -> pa.Table:
        for place, (name, column) in enumerate(self._columns.items()):
            if (respelled := respelling(column.pg)) is not None:
                texts = rows.column(name).to_pylist()
                made = [None if text is None else respelled(text) for text in texts]
                rows = rows.set_column(place, name, pa.array(made, rows.column(name).type))
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
    """DISTINCT knows each type's own equality, wherever its operator is."""
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
        alone(table),
        sql.SQL(", ").join(values),
        sql.SQL(", ").join(texts),
        sql.SQL(", ").join(places),
        sql.SQL(" AND ").join(same),
    )


def _key(
    connection: Connection, table: TableId, key_names: Sequence[str]
) -> tuple[_KeyColumn, ...]:
    asked = {"schema": table.schema, "table": table.name, "names": list(key_names)}
    with translated(f"reading the key of {table}"):
        rows = connection.execute(_KEY.encode(), asked).fetchall()
    found = {
        name: _KeyColumn(name, kind, (schema, operator)) for name, kind, schema, operator in rows
    }
    if not key_names or set(found) != set(key_names):
        raise CdcError(
            ErrorKind.SOURCE_NOT_READY,
            f"{table} has no unique index of exactly these columns: {', '.join(key_names)}",
            remedy="read the whole table",
        )
    return tuple(found[name] for name in key_names)
