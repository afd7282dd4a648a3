"""Finds the rows of a table in its data files by their keys, for one version of the table."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from cdc.events.schema import TableSchema
from cdc.lake.commit.committer import OpenTable
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.replay import LiveFile
from cdc.lake.commit.table_metadata import Metadata
from cdc.lake.files.store_of import store_of
from cdc.lake.key_index import places
from cdc.lake.key_index.data_file import DataFile
from cdc.lake.key_index.key_columns import KeyColumn
from cdc.lake.key_index.key_index import KeyIndex
from cdc.lake.table.merge_plan import COPY, ROW_HASH
from cdc.tables import TableMode

Deleted = Callable[[LiveFile], BitMap64]
"""Returns the deleted rows of a file, as ``Committer.deleted_rows`` does."""


class RowPlaces:
    """Looks rows of one table up; used by one thread at a time.

    ``directory`` belongs to the table alone and holds what does not fit into ``memory_bytes``; it
    may be deleted at any moment.
    """

    def __init__(self, path: str, directory: Path, memory_bytes: int) -> None:
        self._path, self._directory, self._memory = path, directory, memory_bytes
        self._key: tuple[KeyColumn, ...] = ()
        self._index: KeyIndex | None = None

    def at(self, schema: TableSchema, table: OpenTable, deleted: Deleted) -> "VersionPlaces":
        """Return the places in one version; nothing is read before it is asked."""
        return VersionPlaces(schema, table, deleted, self.index)

    def index(self, key: tuple[KeyColumn, ...]) -> KeyIndex:
        """Return the index of the key; it is another one after the key has changed."""
        if self._index is None or key != self._key:
            table = store_of(self._path).tree
            self._index = KeyIndex(
                key=key, table=table, directory=self._directory, memory_bytes=self._memory
            )
            self._key = key
        return self._index


class VersionPlaces:
    """Tells where the rows of one version of a table are.

    Every method raises IndexRefusedError if a place cannot be told for certain.
    """

    def __init__(
        self,
        schema: TableSchema,
        table: OpenTable,
        deleted: Deleted,
        index: Callable[[tuple[KeyColumn, ...]], KeyIndex],
    ) -> None:
        self.schema = schema
        self._table, self._deleted, self._index_of = table, deleted, index

    def look_up(self, keys: pa.Table) -> places.Places:
        """Return where the row of each key is; ``keys`` has the columns ``identity(schema)``."""
        return self._index.look_up(keys, self._live)

    def confirm(self, keys: pa.Table, found: places.Places) -> None:
        """Compare the keys of the found rows with the asked ones, in the data files themselves."""
        self._index.confirm(keys, found)

    def physical(self, name: str) -> str:
        """Return a column's name in data files. Raises TakeMergeError if there is no column."""
        return _physical(self._table.metadata, name)

    @cached_property
    def _index(self) -> KeyIndex:
        return self._index_of(key_columns(self.schema, self._table.metadata))

    @cached_property
    def _live(self) -> list[places.LiveFile]:
        """Return the files with the numbers of their deleted rows; drop indexes of other files."""
        files = [live_file(f, self._deleted(f)) for f in self._table.files.values()]
        self._index.keep_only(live.file for live in files)
        return files


def identity(schema: TableSchema) -> Sequence[str]:
    """Return the columns that tell the table's rows apart; none for a table of inserts only."""
    if schema.mode is TableMode.MULTISET:
        return (ROW_HASH, COPY)
    return schema.key if schema.mode is TableMode.KEYED else ()


def key_columns(schema: TableSchema, metadata: Metadata) -> tuple[KeyColumn, ...]:
    """Return the columns ``identity(schema)`` as the index needs them.

    Raises TakeMergeError if the Delta table lacks one.
    """
    types = {column.name: column.type for column in schema.columns}
    types |= {ROW_HASH: "string", COPY: "bigint"}
    return tuple(KeyColumn(n, _physical(metadata, n), types[n]) for n in identity(schema))


def _physical(metadata: Metadata, name: str) -> str:
    for column in metadata.columns:
        if column.name == name:
            return column.physical
    raise TakeMergeError(f"it has no column {name}")


def live_file(file: LiveFile, deleted: BitMap64) -> places.LiveFile:
    """Return a file of a version, and the numbers of its deleted rows, as the index takes it."""
    data = DataFile(
        path=unquote(file.path), size=file.size, rows=file.records, modified=file.modified
    )
    return places.LiveFile(data, np.asarray(deleted.to_array(), np.int64))
