"""A process that stands still, as under a debugger or on a machine that sleeps."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import psutil


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """SIGSTOP to the process and all that it started, and SIGCONT at the end of the block."""
    root = psutil.Process(pid)
    tree = [root.pid, *(child.pid for child in root.children(recursive=True))]
    for each in tree:
        os.kill(each, signal.SIGSTOP)
    try:
        yield
    finally:
        for each in tree:
            os.kill(each, signal.SIGCONT)
