"""Replaces a file in one step: readers, even after a crash, see the old content or the new one."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_PRIVATE: Final = 0o600
_SHARED: Final = 0o666  # less what the process's umask takes away


def write_private(path: Path, text: str) -> None:
    """Replace the file's text; only the user that runs wal2lake can read it. Raises OSError."""
    _write(path, [text.encode()], _PRIVATE)


def write_private_bytes(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Replace the file's bytes by the parts, one after the other; private. Raises OSError."""
    _write(path, parts, _PRIVATE)


def write_shared(path: Path, text: str) -> None:
    """Replace the file's text; whoever may read other files may read it. Raises OSError."""
    _write(path, [text.encode()], _SHARED)


def _write(path: Path, parts: Iterable[bytes | memoryview], mode: int) -> None:
    """The bytes are on the disk before the name points to it."""
    # Not *.json: a process that lists the folder now must not see half a file. Two processes may
    # write to one path, so each has its own partial file.
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(descriptor, "wb") as handle:
            handle.writelines(parts)
            handle.flush()
            os.fsync(handle.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
