"""Write the results of queries to a Delta table of strings, in one commit."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, WriterProperties, write_deltalake
from psycopg import sql

from cdc.events.structure.declared import SourceColumn
from cdc.source.rows.copy import blocks, names, parsed, respelled
from cdc.source.server.connection import Connection
from cdc.tables import TableId

BATCH_BYTES: Final = 8 << 20
_FILE_BYTES: Final = 64 << 20  # of a Parquet file, about; no more of it is in memory
_GROUPED: Final = WriterProperties(max_row_group_size=10_000)
Tell = Callable[[int, int, int], None]
"""Called after each chunk with chunks, rows and bytes so far; an exception ends the reading."""
_UNINDEXED: Final = {"delta.dataSkippingNumIndexedCols": "0"}
"""No statistics: the strings are read once and whole, so minima and maxima would be useless."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRows:
    """Gives the size of a reading: ``bytes`` as Postgres sent them, ``chunks`` of about a batch."""

    rows: int = 0
    bytes: int = 0
    chunks: int = 0


class Writing:
    """Writes one reading in one commit, with only a few chunks in memory at a time."""

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
                rows = respelled(parsed(block, list(self._columns)), list(self._columns.values()))
                yield from rows.to_batches()
                self._count(rows.num_rows, len(block))

    def _count(self, rows: int, size: int) -> None:
        self.read_rows = ReadRows(
            rows=self.read_rows.rows + rows,
            bytes=self.read_rows.bytes + size,
            chunks=self.read_rows.chunks + 1,
        )
        self._tell(self.read_rows.chunks, self.read_rows.rows, self.read_rows.bytes)
