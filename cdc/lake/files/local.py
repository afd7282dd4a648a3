"""Keep a table's files on a local disk, made durable by ``fsync`` and put in place by ``link``."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from pyarrow import fs

from cdc.lake.files.file_store import FileStore, NoLinksError, Stamp

_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})


class LocalStore:
    """Reads and writes the files below a directory on a local disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = str(folder)

    @property
    def tree(self) -> fs.FileSystem:
        """Return the files as a file system for Arrow."""
        return fs.SubTreeFileSystem(self.path, fs.LocalFileSystem())

    def write(self, name: str, content: bytes) -> None:
        """Write a new file, durably; nothing is left of one that cannot be written."""
        _write(self._folder / name, content)

    def settle(self) -> None:
        """Make the names of all files written so far durable."""
        _make_durable(self._folder)

    def put_if_absent(self, name: str, content: bytes) -> None:
        """Write a file whole and durably if there is none of this name.

        Raises FileExistsError if there is one, NoLinksError if the disk has no hard links.
        """
        path = self._folder / name
        with _temporary(path, content) as whole:
            try:
                os.link(whole, path)
            except OSError as error:
                if error.errno in _NO_LINKS:
                    raise NoLinksError("the lake's disk has no hard links") from None
                raise
        _make_durable(path.parent)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file; raises FileNotFoundError."""
        return (self._folder / name).read_bytes()

    def size(self, name: str) -> int | None:
        """Return how many bytes a file has; None if there is none."""
        try:
            return (self._folder / name).stat().st_size
        except FileNotFoundError:
            return None

    def stamp(self, name: str) -> Stamp | None:
        """Return what tells the file from any other; None if there is none."""
        try:
            found = (self._folder / name).stat()
        except FileNotFoundError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder; raises FileNotFoundError."""
        return [path.name for path in (self._folder / folder).iterdir()]

    def times(self, folder: str) -> dict[str, float]:
        """Return when the files in a folder were written, in seconds since 1970, by name."""
        times = {}
        with os.scandir(self._folder / folder) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):  # a temporary file
                    times[entry.name] = entry.stat().st_mtime
        return times

    def delete(self, name: str) -> bool:
        """Delete a file with Hadoop's checksum beside it; return whether it was there."""
        file = self._folder / name
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        try:
            file.unlink()
        except FileNotFoundError:
            return False
        return True

    def touch(self, name: str) -> None:
        """Write an empty file, or make an existing one as new."""
        (self._folder / name).touch()

    def make_folder(self, name: str, *, parents: bool = True) -> None:
        """Make a folder, and those above it."""
        (self._folder / name).mkdir(parents=parents, exist_ok=True)

    def take(self, source: FileStore, name: str) -> None:
        """Link a file of ``source``, or copy it where the disk has no hard links."""
        target = self._folder / name
        try:
            os.link(Path(source.path) / name, target)
        except OSError:
            shutil.copyfile(Path(source.path) / name, target)
            _make_durable(target)

    def finish(self, name: str) -> int:
        """Make a file durable that was written by ``tree``, and return its bytes."""
        _make_durable(self._folder / name)
        return (self._folder / name).stat().st_size


@contextmanager
def _temporary(path: Path, content: bytes) -> Iterator[Path]:
    """Write a hidden file beside ``path``, which is gone afterwards."""
    whole = path.with_name(f".{path.name}.{uuid4()}.tmp")
    _write(whole, content)
    try:
        yield whole
    finally:
        with suppress(OSError):
            whole.unlink()


def _write(path: Path, content: bytes) -> None:
    with path.open("xb") as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            path.unlink(missing_ok=True)
            raise


def _make_durable(path: Path) -> None:
    """Bring what a file has, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
