"""Names what the job needs of the place of a table's files; each place has a class for it."""

from typing import Protocol

from pyarrow import fs

Stamp = tuple[int | str, ...]
"""Tells a file from another of the same name: one that was copied or restored has another stamp."""


class NoLinksError(OSError):
    """Says that the disk lacks hard links, by which a file is put only if there is none."""


class StoreError(OSError):
    """Says that an object store does not answer, or forbids something: no table is at fault."""


class FileStore(Protocol):
    """Reads and writes the files below one path; names are relative to it, with ``/``.

    Every method raises OSError where the place does not answer, or forbids it.
    """

    path: str

    @property
    def tree(self) -> fs.FileSystem:
        """Return the same files as a file system for Arrow; its root is ``path``."""

    def write(self, name: str, content: bytes) -> None:
        """Write a new file, durably; nothing is left of one that cannot be written."""

    def settle(self) -> None:
        """Make the names of all files written so far durable."""

    def put_if_absent(self, name: str, content: bytes) -> None:
        """Write a file whole and durably if there is none of this name.

        ``content`` is unlike that of any other writer. Raises FileExistsError if there is a file
        with another, NoLinksError where that cannot be done.
        """

    def read(self, name: str) -> bytes:
        """Return the bytes of a file; raises FileNotFoundError."""

    def size(self, name: str) -> int | None:
        """Return how many bytes a file has; None if there is none."""

    def stamp(self, name: str) -> Stamp | None:
        """Return what tells the file from any other; None if there is none."""

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, as ``times`` does."""

    def times(self, folder: str) -> dict[str, float]:
        """Return when the files in a folder were written, in seconds since 1970, by name.

        Raises FileNotFoundError if there is no such folder; an object store has every folder.
        """

    def delete(self, name: str) -> bool:
        """Delete a file with Hadoop's checksum beside it; return whether it was there."""

    def touch(self, name: str) -> None:
        """Write an empty file, or make an existing one as new."""

    def make_folder(self, name: str, *, parents: bool = True) -> None:
        """Make a folder, and perhaps those above it, where there are folders."""

    def take(self, source: "FileStore", name: str) -> None:
        """Have a file that ``source``, a store of the same kind, has: no byte is read."""

    def finish(self, name: str) -> int:
        """Make a file durable that was written by ``tree``, and return its bytes."""
