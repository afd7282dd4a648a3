"""Makes the operation that this process asks for."""

import getpass
import os
import secrets
import socket
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from cdc.state.operation import Operation


def asked_now(
    command: str, tables: Iterable[str], options: Mapping[str, str], *, line: str
) -> Operation:
    """Return a new operation, asked for now by this process.

    ``line`` is its origin: a command line, or a key of the configuration.
    """
    asked_at = datetime.now(UTC)
    return Operation(
        id=f"{asked_at:%Y%m%dT%H%M%S}-{secrets.token_hex(2)}",
        command=command,
        tables=tuple(tables),
        line=line,
        asked_by=f"{_user()}@{socket.gethostname()}, pid {os.getpid()}",
        asked_at=asked_at.isoformat(),
        options=dict(options),
    )


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user without a name
        return str(os.getuid())
