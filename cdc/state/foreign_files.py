"""Files that others put where the job reads: whatever they are, reading never hangs or fails."""

import json
import os
import stat
from pathlib import Path
from typing import Any, Final

MOST_BYTES: Final = 1 << 20


def given(path: Path, most: int = MOST_BYTES) -> dict[str, Any] | None:
    """The JSON object in a regular file; None where it is gone, or is anything else."""
    try:
        return opened(path, most)
    except (OSError, ValueError):
        return None


def opened(path: Path, most: int = MOST_BYTES) -> dict[str, Any]:
    """As ``given``; raises OSError where it cannot be read, ValueError where it is none."""
    try:
        value = json.loads(_content(path, most))
    except RecursionError:
        value = None
    if not isinstance(value, dict):
        message = "not an object"
        raise ValueError(message)  # noqa: TRY004 - as json does
    return value


def _content(path: Path, most: int) -> bytes:
    """A pipe would be waited for."""
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
