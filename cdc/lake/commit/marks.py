"""Tracks the deleted rows of live files, and those that a commit deletes in addition."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from pyroaring import BitMap64

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.lake.commit.deletion_vector import (
    INLINE,
    DamagedVectorError,
    Vector,
    decode,
    encode_file,
    merged,
)
from cdc.lake.commit.log_entry import loosened
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.replay import LiveFile
from cdc.lake.files.file_store import StoreError

NONE: Final = BitMap64()


class DeletedRows:
    """Reads the deleted rows of live files, each vector once; ``read`` returns a file's bytes."""

    def __init__(self, path: str, read: Callable[[str], bytes]) -> None:
        self._path = path
        self._read = read
        self._known: dict[str, tuple[Vector, BitMap64]] = {}

    def of(self, file: LiveFile) -> BitMap64:
        """Return the numbers of the file's deleted rows.

        Raises CHAIN_BROKEN if its vector is gone or damaged, TakeMergeError if it is elsewhere.
        """
        if file.vector is None:
            return NONE
        known = self._known.get(file.path)
        if known is None or known[0] != file.vector:
            self.remember(file.path, file.vector, self._decoded(file.vector))
        return self._known[file.path][1]

    def remember(self, path: str, vector: Vector, rows: BitMap64) -> None:
        """Keep the rows that a vector of the file has."""
        self._known[path] = vector, rows

    def forget_all_but(self, files: Mapping[str, LiveFile]) -> None:
        """Forget the rows of files that are live no more."""
        self._known = {path: known for path, known in self._known.items() if path in files}

    def _decoded(self, vector: Vector) -> BitMap64:
        try:
            name = vector.file
            if name is None and vector.storage != INLINE:
                raise TakeMergeError("it has a deletion vector outside the table")
            return decode(vector, b"" if name is None else self._read(name))
        except StoreError:
            raise
        except (DamagedVectorError, OSError) as error:
            raise CdcError(
                ErrorKind.CHAIN_BROKEN,
                f"a deletion vector of {self._path} cannot be read",
                detail=str(error),
                reason=Reason.TABLE_UNREADABLE,
            ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Lists the files of which a commit deletes rows."""

    rows: Mapping[str, BitMap64]  # all deleted rows by path, of files that keep some rows
    files: Mapping[str, LiveFile]  # these files as they were, by path
    emptied: tuple[LiveFile, ...]  # files that keep no row
    newly: int  # number of rows that this commit deletes

    def encoded(self, uuid: UUID) -> tuple[bytes, list[tuple[LiveFile, LiveFile]]]:
        """Return the bytes of the vector file with this UUID, and each file before and after."""
        content, vectors = encode_file(self.rows, uuid)
        pairs = [
            (old, replace(loosened(old), vector=vectors[path])) for path, old in self.files.items()
        ]
        return content, pairs


def mark(
    live: Mapping[str, LiveFile], rows_of: DeletedRows, deleted: Mapping[str, Iterable[int]]
) -> Marks:
    """Return what becomes of the files whose rows are deleted, given as row numbers by path.

    Raises ValueError for a file that is not live, and a row that is not in it or is deleted.
    """
    rows, newly = {}, 0
    for path, numbers in deleted.items():
        if path not in live:
            raise ValueError(f"{path} is not a file of the table")
        old = rows_of.of(live[path])
        new = merged(old, numbers, live[path].records)
        if len(new) > len(old):
            rows[path], newly = new, newly + len(new) - len(old)
    emptied = [path for path, all_rows in rows.items() if len(all_rows) == live[path].records]
    kept = {path: all_rows for path, all_rows in rows.items() if path not in emptied}
    return Marks(
        rows=kept,
        files={path: live[path] for path in kept},
        emptied=tuple(live[path] for path in emptied),
        newly=newly,
    )
