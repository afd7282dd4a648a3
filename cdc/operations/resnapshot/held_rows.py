"""Reads all rows of a small table of the lake into memory, and where each of them is."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyroaring import BitMap64

from cdc.lake.commit.combined import stored_rows
from cdc.lake.commit.committer import OpenTable
from cdc.lake.commit.data_file import arrow_schema
from cdc.lake.commit.replay import LiveFile
from cdc.lake.files.file_store import FileStore


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRows:
    """Holds the rows of one version of a table, without those that are deleted."""

    rows: pa.Table  # in the table's columns
    files: Sequence[str]  # paths, as the log has them
    file: NDArray[np.int64]  # of each row: the number of its file
    place: NDArray[np.int64]  # of each row: its number in the file

    def places(self, numbers: Iterable[int]) -> Mapping[str, list[int]]:
        """Return the rows with these numbers as ``Committer.commit`` takes deleted rows."""
        by_file = dict[str, list[int]]()
        for number in numbers:
            path = self.files[int(self.file[number])]
            by_file.setdefault(path, []).append(int(self.place[number]))
        return by_file


def held_rows(
    store: FileStore, table: OpenTable, deleted: Callable[[LiveFile], BitMap64]
) -> HeldRows:
    """Return all rows of an open table; ``store`` has its files.

    Raises CombineError for a file that is missing, not what the log says, or of other types.
    """
    schema, files = arrow_schema(table.metadata), list(table.files.values())
    parts, numbers, places = [schema.empty_table()], list[NDArray[np.int64]](), [_none()]
    for number, file in enumerate(files):
        left = _left(file, deleted(file))
        stored = stored_rows(store, file, table.metadata).take(pa.array(left))
        parts.append(pa.table(stored.columns, schema=schema))
        numbers.append(np.full(len(left), number, np.int64))
        places.append(left)
    return HeldRows(
        rows=pa.concat_tables(parts),
        files=[file.path for file in files],
        file=np.concatenate([_none(), *numbers]),
        place=np.concatenate(places),
    )


def _left(file: LiveFile, deleted: BitMap64) -> NDArray[np.int64]:
    """Return the numbers of the rows that are not deleted."""
    gone = np.fromiter(deleted, np.int64, count=len(deleted))
    return np.setdiff1d(np.arange(file.records, dtype=np.int64), gone, assume_unique=True)


def _none() -> NDArray[np.int64]:
    return np.empty(0, np.int64)
