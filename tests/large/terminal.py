"""Runs a command on a terminal, and returns what somebody there sees."""

import os
import pty
import re
import subprocess
from contextlib import suppress

from tests.e2e.installation import Installation

COLUMNS = 100
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(installation: Installation, *arguments: str) -> tuple[int, str]:
    """Exit code, and all that was drawn, one frame after the other, without colours."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        installation.command(*arguments),
        cwd=installation.folder,
        env=installation.environment | {"COLUMNS": str(COLUMNS), "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    drawn = _all_of(ours)
    os.close(ours)
    return process.wait(), _ESCAPES.sub("", drawn.decode())


def _all_of(terminal: int) -> bytes:
    """Until the other side is closed, which Linux tells by an error."""
    found = bytearray()
    with suppress(OSError):
        while some := os.read(terminal, 65536):
            found += some
    return bytes(found)
