"""Finds the current row of each of many keys, at a cost that follows the number of keys."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import fs

from cdc.lake.key_index.codes import KeyCoder
from cdc.lake.key_index.confirm import confirm
from cdc.lake.key_index.data_file import DataFile, KeyColumnReader
from cdc.lake.key_index.key_columns import KeyColumn
from cdc.lake.key_index.places import LiveFile, Places
from cdc.lake.key_index.refused import IndexRefusedError
from cdc.lake.key_index.secret import secret_of
from cdc.lake.key_index.shelf import Shelf


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatistics:
    """Counts what the indexes of a table hold; ``made`` is how many of them this process made."""

    files: int
    keys: int
    memory_bytes: int
    mapped_bytes: int
    made: int


class KeyIndex:
    """Keeps a key index for each data file of one table, made from its key columns when asked.

    Data files do not change, so an index is right as long as its file is in the table. Indexes are
    a cache: ``directory``, which belongs to this table alone, may be deleted at any moment. One
    thread at a time may use the object.
    """

    def __init__(
        self, *, key: Sequence[KeyColumn], table: fs.FileSystem, directory: Path, memory_bytes: int
    ) -> None:
        """Take the key, the table's directory as a file system, and a bound for memory.

        Indexes beyond ``memory_bytes`` are mapped from files in ``directory``. Raises
        IndexRefusedError for a key of a type that cannot be indexed.
        """
        self._key = tuple(key)
        self._reader = KeyColumnReader(table, self._key)
        self._coder = KeyCoder(self._key, secret_of(directory))
        self._shelf = Shelf(self._reader, self._coder, directory, memory_bytes)

    def look_up(self, keys: pa.Table, files: Sequence[LiveFile]) -> Places:
        """Return where the current row of each key is, among the files of one version.

        ``keys`` has the key's columns by name, in the lake's types. Raises IndexRefusedError if
        that cannot be told for certain: a NULL, a key with two live rows, a file that is missing
        or is not what the log says.
        """
        _refuse_twice(files)
        codes = self._coder.codes(self._columns(keys))
        order = np.argsort(codes.first, kind="stable")
        asked = codes.take(order)  # in order, so that near keys touch the same pages
        number = np.full(order.size, -1, np.int32)
        row = np.full(order.size, -1, np.int64)
        for at, live in enumerate(files):
            found, rows = self._shelf.index(live.file).find(asked, live.deleted_rows())
            places = order[found]
            if np.any(number[places] >= 0) or np.unique(places).size < places.size:
                raise IndexRefusedError(f"a key of data file {live.file.path} has two live rows")
            number[places], row[places] = at, rows
        return Places(tuple(live.file for live in files), number, row)

    def confirm(self, keys: pa.Table, places: Places) -> None:
        """Compare the found rows' keys with the asked ones; raise IndexRefusedError if any differs.

        Reads the key columns of all row groups with such a row.
        """
        confirm(self._reader, self._key, self._columns(keys), places)

    def prepare(self, files: Iterable[DataFile]) -> None:
        """Make the indexes of files that are about to be in the table. Raises IndexRefusedError."""
        for file in files:
            self._shelf.index(file)

    def keep_only(self, files: Iterable[DataFile]) -> None:
        """Drop the indexes of all other files, in memory and on disk."""
        self._shelf.keep_only({file.path for file in files})

    def statistics(self) -> IndexStatistics:
        """Return the number of files, keys and bytes."""
        held = list(self._shelf)
        return IndexStatistics(
            files=len(held),
            keys=sum(one.index.rows.size for one in held),
            memory_bytes=self._shelf.memory_bytes,
            mapped_bytes=sum(one.index.nbytes for one in held if one.mapped),
            made=self._shelf.made,
        )

    def bytes_per_key(self) -> float:
        """Return the bytes per key of all indexes, in memory or mapped; 0 without keys."""
        now = self.statistics()
        return (now.memory_bytes + now.mapped_bytes) / now.keys if now.keys else 0.0

    def _columns(self, keys: pa.Table) -> list[pa.Array]:
        return [keys.column(column.name).combine_chunks() for column in self._key]


def _refuse_twice(files: Sequence[LiveFile]) -> None:
    paths = [live.file.path for live in files]
    if len(set(paths)) < len(paths):
        raise IndexRefusedError("a data file is in the table's version twice")
