"""Keep the secret of a directory of indexes, on which their digests depend."""

import secrets
from pathlib import Path
from typing import Final

from cdc.state.atomic_file import write_private_bytes

_NAME: Final = "secret"
_BYTES: Final = 32


def secret_of(directory: Path) -> bytes:
    """Return the directory's secret; make one if there is none.

    If it cannot be kept it is good for this process: the next one makes its indexes again.
    """
    path = directory / _NAME
    try:
        if len(kept := path.read_bytes()) == _BYTES:
            return kept
    except OSError:
        pass
    made = secrets.token_bytes(_BYTES)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        write_private_bytes(path, [made])
    except OSError:
        pass
    return made
