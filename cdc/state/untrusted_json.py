"""Reads files that others place where the job reads: whatever they are, it never hangs."""

import json
import os
import stat
from pathlib import Path
from typing import Any, Final

MOST_BYTES: Final = 1 << 20


def read_or_none(path: Path, most: int = MOST_BYTES) -> dict[str, Any] | None:
    """Return the JSON object in a regular file; None if the file is gone or is anything else.

    Files of more than ``most`` bytes count as anything else.
    """
    try:
        return read_object(path, most)
    except (OSError, ValueError):
        return None


def read_object(path: Path, most: int = MOST_BYTES) -> dict[str, Any]:
    """Return the JSON object in a regular file of at most ``most`` bytes.

    Raises OSError if the file cannot be read, ValueError if it is no such file or no JSON object.
    """
    try:
        value = json.loads(_content(path, most))
    except RecursionError:
        value = None
    if not isinstance(value, dict):
        message = "not an object"
        raise ValueError(message)  # noqa: TRY004 - as json does
    return value


def _content(path: Path, most: int) -> bytes:
    """Read without blocking: an ordinary open would wait for the writer of a pipe."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            message = "not a file"
            raise ValueError(message)
        content = file.read(most + 1)
    if len(content) > most:
        message = "too large"
        raise ValueError(message)
    return content
