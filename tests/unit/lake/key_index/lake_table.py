"""A table's data files with deletion vectors, and where each key's row is by a plain dict."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from cdc.lake.key_index.data_file import DataFile
from cdc.lake.key_index.key_columns import KeyColumn
from cdc.lake.key_index.key_index import KeyIndex
from cdc.lake.key_index.places import LiveFile, Places

Key = tuple[Any, ...]
Place = tuple[str, int]
ARROW: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "decimal(38,9)": pa.decimal128(38, 9),
    "decimal(5,2)": pa.decimal128(5, 2),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "string": pa.string(),
    "binary": pa.binary(),
}


def key_of(*types: str) -> tuple[KeyColumn, ...]:
    """Return a key of these types, whose physical names differ from the names."""
    return tuple(
        KeyColumn(f"k{number}", f"col-{number}.x", kind) for number, kind in enumerate(types)
    )


def batch(key: Sequence[KeyColumn], keys: Sequence[Key], *, physical: bool = False) -> pa.Table:
    """Return the keys as columns."""
    return pa.table(
        {
            column.physical if physical else column.name: pa.array(
                [one[place] for one in keys], ARROW[column.type]
            )
            for place, column in enumerate(key)
        }
    )


def write(
    folder: Path, name: str, key: Sequence[KeyColumn], keys: Sequence[Key], *, group: int = 7
) -> DataFile:
    """Write a data file with these keys, in row groups of ``group`` rows."""
    rows = batch(key, keys, physical=True).append_column("payload", pa.array(range(len(keys))))
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, folder / name, row_group_size=group)
    return DataFile(name, (folder / name).stat().st_size, len(keys))


@dataclass
class LakeTable:
    """Keeps a table in ``folder / "table"``, and its index in ``folder / "index"``."""

    folder: Path
    key: tuple[KeyColumn, ...]
    memory_bytes: int = 1 << 30
    files: dict[str, DataFile] = field(default_factory=dict)
    deleted: dict[str, set[int]] = field(default_factory=dict)
    places: dict[Key, Place] = field(default_factory=dict)
    written: int = 0

    def __post_init__(self) -> None:
        (self.folder / "table").mkdir(parents=True, exist_ok=True)
        self.restart()

    @property
    def directory(self) -> Path:
        return self.folder / "index"

    def restart(self) -> None:
        """Begin with an index object that has nothing in memory."""
        table = fs.SubTreeFileSystem(str(self.folder / "table"), fs.LocalFileSystem())
        self.index = KeyIndex(
            key=self.key, table=table, directory=self.directory, memory_bytes=self.memory_bytes
        )

    def apply(self, upserts: Sequence[Key], deletes: Iterable[Key] = ()) -> None:
        """Delete the old rows of all keys by vectors, and append the upserted keys in one file."""
        for key in {*upserts, *deletes}:
            if key in self.places:
                name, row = self.places.pop(key)
                self.deleted[name].add(row)
        self.append(upserts)

    def append(self, keys: Sequence[Key]) -> DataFile:
        """Append a file, even if its keys have rows already."""
        name = f"part-{self.written}.parquet"
        self.written += 1
        self.files[name] = write(self.folder / "table", name, self.key, keys)
        self.deleted[name] = set()
        self.places.update({key: (name, row) for row, key in enumerate(keys)})
        return self.files[name]

    def compact(self) -> None:
        """Rewrite all live rows into one file, in another order."""
        self.files, self.deleted = {}, {}
        self.append(sorted(self.places, key=repr, reverse=True))
        self.index.keep_only(self.files.values())

    def live(self, *, vectors: bool = False) -> list[LiveFile]:
        return [
            LiveFile(
                file,
                np.array(sorted(self.deleted[name]), np.uint32) if vectors else self.deleted[name],
            )
            for name, file in self.files.items()
        ]

    def look_up(self, keys: Sequence[Key], *, vectors: bool = False) -> list[Place | None]:
        """Return the place of each key as the index tells it, confirmed by the files."""
        asked = batch(self.key, keys)
        places = self.index.look_up(asked, self.live(vectors=vectors))
        self.index.confirm(asked, places)
        return as_list(places)

    def expected(self, keys: Iterable[Key]) -> list[Place | None]:
        return [self.places.get(key) for key in keys]


def as_list(places: Places) -> list[Place | None]:
    return [
        None if file < 0 else (places.files[file].path, int(row))
        for file, row in zip(places.file, places.row, strict=True)
    ]
