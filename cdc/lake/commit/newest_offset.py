"""Finds the newest event among the rows of a data file, by its statistics or its footer."""

import json
from urllib.parse import unquote

import pyarrow.parquet as pq

from cdc.lake.commit.replay import LiveFile
from cdc.lake.files.store_of import store_of


class NewestOffsets:
    """Knows the largest value of a column in each data file of the table at ``path``.

    Data files do not change, so each is looked at once.
    """

    def __init__(self, path: str) -> None:
        self._tree = store_of(path).tree
        self._known: dict[tuple[str, str], int | None] = {}

    def of(self, file: LiveFile, column: str) -> int | None:
        """Return the largest value of an integer column; None if the file does not say.

        ``column`` is the column's name in data files.
        """
        place = (file.path, column)
        if place not in self._known:
            found = _in_statistics(file, column)
            self._known[place] = self._in_footer(file, column) if found is None else found
        return self._known[place]

    def forget_all_but(self, paths: frozenset[str]) -> None:
        """Forget the files that are live no more."""
        self._known = {place: at for place, at in self._known.items() if place[0] in paths}

    def _in_footer(self, file: LiveFile, column: str) -> int | None:
        try:
            footer = pq.read_metadata(unquote(file.path), filesystem=self._tree)
        except (OSError, ValueError):
            return None
        if column not in footer.schema.names:
            return None
        number = footer.schema.names.index(column)
        groups = (footer.row_group(group) for group in range(footer.num_row_groups))
        largest = [_largest(group.column(number)) for group in groups]
        known = [value for value in largest if value is not None]
        return max(known) if known and len(known) == len(largest) else None


def _in_statistics(file: LiveFile, column: str) -> int | None:
    found = json.loads(file.stats or "{}").get("maxValues", {}).get(column)
    return found if isinstance(found, int) else None


def _largest(chunk: pq.ColumnChunkMetaData) -> int | None:
    found = chunk.statistics.max if chunk.is_stats_set and chunk.statistics.has_min_max else None
    return found if isinstance(found, int) else None
