"""A small lake whose tables are in many files, so that a change leaves most of them as they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from deltalake import write_deltalake

from cdc.tables import TableId
from tests.unit.derive.small_lake import SmallLake, Values

FILES: Final = 60
ROWS: Final = 100
"""So many are in a file, or more where there would be too many files."""
Row = Mapping[str, Any]


@dataclass
class FiledLake(SmallLake):
    """The rows of a file have neighbouring values in the first column, a whole number."""

    _files: dict[str, dict[int, list[Row]]] = field(default_factory=dict)
    _widths: dict[str, int] = field(default_factory=dict)

    def set(self, **rows: Values) -> None:
        """Make tables hold these rows: only the files that differ are written, in one version."""
        for name, values in rows.items():
            key = self.schemas[name].names[0]
            if name not in self._widths:
                self._widths[name] = max(row[key] for row in values) // _files(len(values)) + 1
            before, now = self._files.get(name, {}), self._by_file(name, values)
            self._files[name] = now
            changed = [n for n in sorted({*before, *now}) if before.get(n) != now.get(n)]
            if before and changed:
                self._replace(name, changed)
            for number in () if before else changed:
                write_deltalake(self._at(name), self._data(name, [number]), mode="append")

    def _by_file(self, name: str, values: Sequence[Row]) -> dict[int, list[Row]]:
        key, found = self.schemas[name].names[0], dict[int, list[Row]]()
        for row in values:
            found.setdefault(row[key] // self._widths[name], []).append(dict(row))
        return found

    def _replace(self, name: str, numbers: Sequence[int]) -> None:
        key, width = self.schemas[name].names[0], self._widths[name]
        ranges = (f"({key} >= {n * width} AND {key} < {(n + 1) * width})" for n in numbers)
        write_deltalake(
            self._at(name),
            self._data(name, numbers),
            mode="overwrite",
            predicate=" OR ".join(ranges),
        )

    def _data(self, name: str, numbers: Sequence[int]) -> pa.Table:
        schema = self.schemas[name].append(pa.field("_cdc_offset", pa.int64()))
        rows = (row for n in numbers for row in self._files[name].get(n, ()))
        return pa.Table.from_pylist([{**row, "_cdc_offset": 1} for row in rows], schema)

    def _at(self, name: str) -> str:
        return self.path(TableId("shop", name))


def _files(rows: int) -> int:
    return max(1, min(FILES, rows // ROWS))
