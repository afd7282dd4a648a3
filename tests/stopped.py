"""Suspend a process, as a debugger or a sleeping machine does."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import psutil


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Suspend the process and its descendants with SIGSTOP; resume them after the block."""
    root = psutil.Process(pid)
    tree = [root.pid, *(child.pid for child in root.children(recursive=True))]
    for member in tree:
        os.kill(member, signal.SIGSTOP)
    try:
        yield
    finally:
        for member in tree:
            os.kill(member, signal.SIGCONT)
