"""Keep the indexes of a table's files: some in memory, the others mapped from a directory."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from cdc.lake.key_index.codes import KeyCoder
from cdc.lake.key_index.data_file import DataFile, KeyColumnReader, Stamp
from cdc.lake.key_index.file_index import FileIndex, build
from cdc.lake.key_index.index_file import SUFFIX, file_name, load, save

KEPT_BYTES: Final = 1 << 20
"""An index of this size is worth a file even if it fits into memory: a start then maps it."""


@dataclass(frozen=True, slots=True)
class Held:
    """Holds an index with the data file that it was made from."""

    file: DataFile
    stamp: Stamp
    index: FileIndex
    mapped: bool


class Shelf:
    """Makes indexes, and keeps those in memory within a bound by moving the largest to files.

    A file that cannot be written costs time and nothing else: its index is made again when asked.
    """

    def __init__(
        self, reader: KeyColumnReader, coder: KeyCoder, directory: Path, memory_bytes: int
    ) -> None:
        self._reader = reader
        self._coder = coder
        self._directory = directory
        self._bound = memory_bytes
        self._held: dict[str, Held] = {}
        self.made = 0
        """Indexes made from data files by this process."""

    def __iter__(self) -> Iterator[Held]:
        return iter(self._held.values())

    @property
    def memory_bytes(self) -> int:
        """Return the size in bytes of all indexes in memory."""
        return sum(held.index.nbytes for held in self if not held.mapped)

    def index(self, file: DataFile) -> FileIndex:
        """Return the file's index; make it if it is not there. Raises IndexRefusedError."""
        held = self._held.get(file.path)
        if held is None or held.file != file:
            held = self._held[file.path] = self._opened(file, held)
            self._move_the_largest()
        return self._held.get(file.path, held).index

    def keep_only(self, paths: Collection[str]) -> None:
        """Drop the indexes of all other data files, and what a crash has left half written."""
        self._held = {path: held for path, held in self._held.items() if path in paths}
        names = {file_name(path) for path in paths}
        with suppress(OSError):
            for path in [*self._directory.glob("*" + SUFFIX), *self._directory.glob(".*.partial")]:
                if path.name not in names:
                    path.unlink(missing_ok=True)

    def _opened(self, file: DataFile, before: Held | None) -> Held:
        stamp = self._reader.stamp(file)
        if before is not None and before.stamp == stamp:
            return replace(before, file=file)
        index = load(self._path(file), stamp, self._coder)
        if index is not None:
            return Held(file, stamp, index, mapped=True)
        index = build(self._reader.batches(file), file.rows, self._coder)
        self.made += 1
        held = Held(file, stamp, index, mapped=False)
        if index.nbytes >= KEPT_BYTES:
            self._save(held)
        return held

    def _move_the_largest(self) -> None:
        while self.memory_bytes > self._bound:
            largest = max(self, key=lambda held: 0 if held.mapped else held.index.nbytes)
            moved = self._mapped(largest)
            if moved is None:
                del self._held[largest.file.path]
            else:
                self._held[largest.file.path] = moved

    def _mapped(self, held: Held) -> Held | None:
        index = load(self._path(held.file), held.stamp, self._coder)
        if index is None and self._save(held):
            index = load(self._path(held.file), held.stamp, self._coder)
        return None if index is None else Held(held.file, held.stamp, index, mapped=True)

    def _save(self, held: Held) -> bool:
        try:
            save(self._path(held.file), held.index, held.stamp, self._coder)
        except OSError:
            return False
        return True

    def _path(self, file: DataFile) -> Path:
        return self._directory / file_name(file.path)
