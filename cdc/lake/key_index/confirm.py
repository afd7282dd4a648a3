"""Compares found rows with the data files themselves, without any index."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cdc.lake.key_index.data_file import DataFile, KeyColumnReader
from cdc.lake.key_index.file_index import Rows
from cdc.lake.key_index.key_columns import KeyColumn, in_one_form
from cdc.lake.key_index.places import Places
from cdc.lake.key_index.refused import IndexRefusedError


def confirm(
    reader: KeyColumnReader, key: Sequence[KeyColumn], asked: Sequence[pa.Array], places: Places
) -> None:
    """Raise IndexRefusedError if a found row has another key than the one asked for."""
    wanted = [in_one_form(*pair) for pair in zip(key, asked, strict=True)]
    for number, file in enumerate(places.files):
        hits = np.flatnonzero(places.file == number)
        if hits.size and not _is_right(reader, key, file, (wanted, hits, places.row[hits])):
            raise IndexRefusedError(f"the index of data file {file.path} is wrong")


def _is_right(
    reader: KeyColumnReader,
    key: Sequence[KeyColumn],
    file: DataFile,
    found: tuple[Sequence[pa.Array], NDArray[np.intp], Rows],
) -> bool:
    wanted, hits, rows = found
    compared = 0

    def inside(group: range) -> NDArray[np.bool_]:
        return (rows >= group.start) & (rows < group.stop)

    for group, there in reader.row_groups(file, lambda group: bool(inside(group).any())):
        some = inside(group)
        at, mine = pa.array(rows[some] - group.start), pa.array(hits[some])
        for column, values, want in zip(key, there, wanted, strict=True):
            if not in_one_form(column, values).take(at).equals(want.take(mine)):
                return False
        compared += int(np.count_nonzero(some))
    return compared == rows.size
