"""Define the index of one data file: the codes of its keys, sorted, and the row of each."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cdc.lake.key_index.codes import Codes, KeyCoder
from cdc.lake.key_index.refused import IndexRefusedError

Rows = NDArray[np.int64]
"""Physical rows of a data file, from 0."""


@dataclass(frozen=True, slots=True)
class FileIndex:
    """Holds the codes in the order of their first number; ``rows`` has the row of each, as uint32.

    The arrays are in memory, or mapped from a file; nobody changes them.
    """

    codes: Codes
    rows: NDArray[np.uint32]

    @property
    def nbytes(self) -> int:
        """Return the size of the arrays in bytes."""
        return sum(array.nbytes for array in self.arrays())

    def arrays(self) -> list[NDArray[np.generic]]:
        """Return the arrays in the order of an index file."""
        second = self.codes.second
        return [self.codes.first, *([] if second is None else [second]), self.rows]

    def find(self, asked: Codes, deleted: Rows) -> tuple[NDArray[np.intp], Rows]:
        """Return which of the asked codes have a live row here, and that row.

        ``asked`` is sorted by its first number, ``deleted`` ascending. A code with several live
        rows is returned with each of them.
        """
        pending, places = self._first_places(asked)
        found, rows = [pending[:0]], [np.empty(0, np.int64)]
        while pending.size:
            hits, at = self._live(asked, pending, places, deleted)
            found.append(hits)
            rows.append(at)
            pending, places = self._next_places(asked, pending, places)
        return np.concatenate(found), np.concatenate(rows)

    def _first_places(self, asked: Codes) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the codes that the file may hold, and where in it they begin."""
        first = self.codes.first
        if not first.size:
            return np.empty(0, np.intp), np.empty(0, np.intp)
        low = int(np.searchsorted(asked.first, first[0], "left"))
        high = int(np.searchsorted(asked.first, first[-1], "right"))
        pending = np.arange(low, high)
        places = np.searchsorted(first, asked.first[low:high])
        equal = first[places] == asked.first[pending]
        return pending[equal], places[equal]

    def _next_places(
        self, asked: Codes, pending: NDArray[np.intp], places: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        first, after = self.codes.first, places + 1
        inside = after < first.size
        pending, after = pending[inside], after[inside]
        equal = first[after] == asked.first[pending]
        return pending[equal], after[equal]

    def _live(
        self, asked: Codes, pending: NDArray[np.intp], places: NDArray[np.intp], deleted: Rows
    ) -> tuple[NDArray[np.intp], Rows]:
        if self.codes.second is not None and asked.second is not None:
            equal = self.codes.second[places] == asked.second[pending]
            pending, places = pending[equal], places[equal]
        rows = self.rows[places].astype(np.int64)
        live = ~_contains(deleted, rows)
        return pending[live], rows[live]


def build(batches: Iterable[list[pa.Array]], rows: int, coder: KeyCoder) -> FileIndex:
    """Return the index of a file with ``rows`` rows, from its key columns in their order.

    Raises IndexRefusedError for a value that no key has, and if there are more or fewer rows.
    """
    parts = [coder.codes(columns) for columns in batches]
    first = np.concatenate([part.first for part in parts]) if parts else coder.none.first
    halves = [part.second for part in parts if part.second is not None]
    if first.size != rows:
        raise IndexRefusedError(f"a data file has {first.size} rows, not the {rows} of its footer")
    return _sorted(Codes(first, np.concatenate(halves) if halves else coder.none.second))


def _sorted(codes: Codes) -> FileIndex:
    order = np.argsort(codes.first)
    return FileIndex(codes.take(order), order.astype(np.uint32))


def _contains(sorted_rows: Rows, rows: Rows) -> NDArray[np.bool_]:
    if not sorted_rows.size:
        return np.zeros(rows.size, np.bool_)
    places = np.minimum(np.searchsorted(sorted_rows, rows), sorted_rows.size - 1)
    return np.equal(sorted_rows[places], rows)
