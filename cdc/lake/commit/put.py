"""Puts a commit's files in place: durably, and the log entry only if there is none yet.

``FileStore`` is what a commit needs of a place. A local disk does it by ``fsync`` and ``link``;
an object store would by conditional puts, and is refused until one is here.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol
from uuid import uuid4

from cdc.errors import CdcError, ErrorKind
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.layout import is_local

_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})


class FileStore(Protocol):
    """The files of one table."""

    def write(self, name: str, content: bytes | memoryview) -> None:
        """Write a new file, durably."""

    def settle(self) -> None:
        """Make the names of all files written so far durable."""

    def put_if_absent(self, name: str, content: bytes) -> None:
        """Write a file whole and durably if there is none of this name.

        Raises CONFLICT if there is one.
        """

    def read(self, name: str) -> bytes:
        """Return the bytes of a file; raises FileNotFoundError."""

    def size(self, name: str) -> int | None:
        """Return how many bytes a file has; None if there is none."""


def store_of(path: str) -> FileStore:
    """Return the store of the table at ``path``.

    Raises TakeMergeError for an object store.
    """
    if not is_local(path):
        raise TakeMergeError(f"the lake is not on a local disk ({path.partition('://')[0]})")
    return LocalStore(Path(path))


class LocalStore:
    """A directory on a local disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, name: str, content: bytes | memoryview) -> None:
        """Write a new file, durably; nothing is left of one that cannot be written."""
        _write(self._folder / name, content)

    def settle(self) -> None:
        """Make the names of all files written so far durable."""
        make_durable(self._folder)

    def put_if_absent(self, name: str, content: bytes) -> None:
        """Write a file whole and durably if there is none of this name.

        Raises CONFLICT if there is one, TakeMergeError if the disk has no hard links.
        """
        path = self._folder / name
        with _temporary(path, content) as whole:
            try:
                os.link(whole, path)
            except FileExistsError:
                raise _conflict(path) from None
            except OSError as error:
                if error.errno in _NO_LINKS:
                    raise TakeMergeError("the lake's disk has no hard links") from None
                raise
        make_durable(path.parent)

    def read(self, name: str) -> bytes:
        """Return the bytes of a file; raises FileNotFoundError."""
        return (self._folder / name).read_bytes()

    def size(self, name: str) -> int | None:
        """Return how many bytes a file has; None if there is none."""
        try:
            return (self._folder / name).stat().st_size
        except FileNotFoundError:
            return None


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


def _write(path: Path, content: bytes | memoryview) -> None:
    with path.open("xb") as file:
        try:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            path.unlink(missing_ok=True)
            raise


def make_durable(path: Path) -> None:
    """Bring what a file has, or the names in a folder, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _conflict(path: Path) -> CdcError:
    return CdcError(
        ErrorKind.CONFLICT,
        f"version {path.stem.lstrip('0') or 0} of {path.parent.parent} is there already",
        detail="somebody else has committed to the table; nothing of this commit is in it",
    )
