"""Defines what is asked and answered: live data files, and the place of each key's row in them."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cdc.lake.key_index.data_file import DataFile
from cdc.lake.key_index.file_index import Rows
from cdc.lake.key_index.refused import IndexRefusedError


@dataclass(frozen=True, slots=True)
class LiveFile:
    """Holds a data file of the version that is asked, and the rows its deletion vector marks.

    ``deleted`` has physical rows, each once or more often, in any order; ascending is fastest.
    """

    file: DataFile
    deleted: Iterable[int] | NDArray[np.integer] = ()

    def deleted_rows(self) -> Rows:
        """Return the deleted rows in ascending order.

        Raises IndexRefusedError if the file has no such row: the vector is that of another file.
        """
        given = self.deleted
        rows = given if isinstance(given, np.ndarray) else np.fromiter(given, np.int64)
        rows = rows.astype(np.int64, copy=False)
        if np.any(rows[1:] < rows[:-1]):
            rows = np.sort(rows)
        if rows.size and not 0 <= rows[0] <= rows[-1] < self.file.rows:
            raise IndexRefusedError(f"rows beyond data file {self.file.path} are marked as deleted")
        return rows


@dataclass(frozen=True, slots=True)
class Places:
    """Says where the row of each asked key is, in the order in which they were asked.

    ``file`` is a number in ``files`` and ``row`` a physical row in that file, both from 0; both
    are -1 for a key that has no row.
    """

    files: tuple[DataFile, ...]
    file: NDArray[np.int32]
    row: Rows

    def rows_by_file(self) -> dict[str, Rows]:
        """Return the rows found in each file with any, by its path, ascending and distinct."""
        return {
            self.files[number].path: np.unique(self.row[self.file == number])
            for number in np.unique(self.file[self.file >= 0])
        }
