"""Reads rows of a Delta table before a batch: the key index finds them in its data files."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cdc.apply.local.arrow import arrow_type
from cdc.apply.local.change import Key
from cdc.apply.local.identity import NAN
from cdc.apply.local.not_local import NotLocalError
from cdc.apply.local.places import VersionPlaces
from cdc.apply.local.stored_rows import MOST_BYTES, StoredColumn, row_file
from cdc.lake.files.store_of import store_of
from cdc.lake.table.merge_plan import COPY, ROW_HASH
from cdc.lake.table.plain_values import plain_values


class TableRows:
    """Reads rows of one version of the table at ``path``, as a ``LakeRows``.

    Every method raises IndexRefusedError where a row's place is not certain.
    """

    def __init__(self, path: str, places: VersionPlaces) -> None:
        """Take the places of the version's rows."""
        self._files = store_of(path).tree
        self._places = places
        self._schema = places.schema

    def rows(self, keys: Collection[Key], columns: Sequence[int]) -> Mapping[Key, Sequence[Any]]:
        """Return the values of these columns, in their order, by key; absent rows are left out.

        Before a value is taken from a row, its key is read from the data file and compared. Raises
        NotLocalError if a file cannot be read, or more than ``MOST_BYTES`` would be read.
        """
        asked = list(keys)
        identities = self._table(asked)
        places = self._places.look_up(identities)
        self._places.confirm(identities, places)
        stored = [self._stored(number) for number in columns]
        found: dict[Key, Sequence[Any]] = {}
        left = MOST_BYTES
        for number in np.unique(places.file[places.file >= 0]):
            hits = np.flatnonzero(places.file == number)
            hits = hits[np.argsort(places.row[hits])]
            with row_file(self._files, places.files[number], stored) as file:
                left -= file.cost(places.row[hits])
                if left < 0:
                    raise NotLocalError("values that did not change are among too many others")
                values = map(plain_values, file.read(places.row[hits]))
                found |= zip((asked[hit] for hit in hits), zip(*values, strict=True), strict=True)
        return found

    def copies(self, digests: Collection[str]) -> Mapping[str, int]:
        """Return how many copies a table without a key holds of each row, by its digest.

        Copies are numbered from 1 without gaps, so the highest number is the count: it is searched
        for by doubling, and then by halving what is left.
        """
        asked = np.array(list(digests), dtype=object)
        held = np.zeros(asked.size, np.int64)  # it has so many
        beyond = np.ones(asked.size, np.int64)  # it has fewer, once the first loop is done
        at = np.arange(asked.size)
        while at.size:
            at = at[self._has(asked[at], beyond[at])]
            held[at] = beyond[at]
            beyond[at] *= 2
        while (at := np.flatnonzero(beyond - held > 1)).size:
            middle = (held[at] + beyond[at]) // 2
            has = self._has(asked[at], middle)
            held[at[has]], beyond[at[~has]] = middle[has], middle[~has]
        return dict(zip(asked.tolist(), held.tolist(), strict=True))

    def _has(self, digests: NDArray[np.object_], copies: NDArray[np.int64]) -> NDArray[np.bool_]:
        rows = {ROW_HASH: pa.array(digests, pa.string()), COPY: pa.array(copies, pa.int64())}
        return np.greater_equal(self._places.look_up(pa.table(rows)).file, 0)

    def _table(self, keys: Sequence[Key]) -> pa.Table:
        """Return keys as the index takes them."""
        parts = [[math.nan if part is NAN else part for part in key] for key in keys]
        kinds = {column.name: arrow_type(column.type) for column in self._schema.columns}
        return pa.table(
            {
                name: pa.array([key[place] for key in parts], kinds[name])
                for place, name in enumerate(self._schema.key)
            }
        )

    def _stored(self, number: int) -> StoredColumn:
        column = self._schema.columns[number]
        return StoredColumn(self._places.physical(column.name), column.type)
