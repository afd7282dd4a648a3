"""Lets a thread have only the time that others leave."""

import os
import sys
from contextlib import suppress
from typing import Final

_NICENESS: Final = 10


def yielding() -> None:
    """Give this thread a low priority, where the system has one for each thread.

    Threads that it starts have it too. It cannot be taken back without special rights.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)  # 0 is this thread
