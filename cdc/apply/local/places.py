"""Finds the rows of a table in its data files by their keys, for one version of the table."""

from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs
from pyroaring import BitMap64

from cdc.events.schema import TableSchema
from cdc.lake.commit.committer import OpenTable
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.replay import LiveFile
from cdc.lake.commit.table_metadata import Metadata
from cdc.lake.key_index import places
from cdc.lake.key_index.data_file import DataFile
from cdc.lake.key_index.key_columns import KeyColumn
from cdc.lake.key_index.key_index import KeyIndex
from cdc.lake.table.merge_plan import COPY, ROW_HASH
from cdc.tables import TableMode


class RowPlaces:
    """Looks rows of one table up; used by one thread at a time.

    ``directory`` belongs to the table alone and holds what does not fit into ``memory_bytes``; it
    may be deleted at any moment.
    """

    def __init__(self, path: str, directory: Path, memory_bytes: int) -> None:
        self._path, self._directory, self._memory = path, directory, memory_bytes
        self._key: tuple[KeyColumn, ...] = ()
        self._index: KeyIndex | None = None

    def look_up(
        self,
        keys: pa.Table,
        schema: TableSchema,
        table: OpenTable,
        deleted: Callable[[LiveFile], BitMap64],
    ) -> places.Places:
        """Return where the row of each key is in the open version.

        ``keys`` has the columns ``identity(schema)``; ``deleted`` returns the deleted rows of a
        file. Raises IndexRefusedError if a place cannot be told for certain.
        """
        index = self._index_of(key_columns(schema, table.metadata))
        files = [places.LiveFile(_data_file(f), list(deleted(f))) for f in table.files.values()]
        index.keep_only(live.file for live in files)
        return index.look_up(keys, files)

    def _index_of(self, key: tuple[KeyColumn, ...]) -> KeyIndex:
        if self._index is None or key != self._key:
            table = fs.SubTreeFileSystem(self._path, fs.LocalFileSystem())
            self._index = KeyIndex(
                key=key, table=table, directory=self._directory, memory_bytes=self._memory
            )
            self._key = key
        return self._index


def identity(schema: TableSchema) -> Sequence[str]:
    """Return the columns that tell the table's rows apart; none for a table of inserts only."""
    if schema.mode is TableMode.MULTISET:
        return (ROW_HASH, COPY)
    return schema.key if schema.mode is TableMode.KEYED else ()


def key_columns(schema: TableSchema, metadata: Metadata) -> tuple[KeyColumn, ...]:
    """Return the columns ``identity(schema)`` as the index needs them.

    Raises TakeMergeError if the Delta table lacks one.
    """
    stored = {column.name: column.physical for column in metadata.columns}
    types = {column.name: column.type for column in schema.columns}
    types |= {ROW_HASH: "string", COPY: "bigint"}
    if missing := [name for name in identity(schema) if name not in stored]:
        raise TakeMergeError(f"it has no column {missing[0]}")
    return tuple(KeyColumn(name, stored[name], types[name]) for name in identity(schema))


def _data_file(file: LiveFile) -> DataFile:
    return DataFile(
        path=unquote(file.path), size=file.size, rows=file.records, modified=file.modified
    )
