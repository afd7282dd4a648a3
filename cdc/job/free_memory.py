"""Gives memory that the job has freed back to the system.

Combining files and writing checkpoints take tens of megabytes for seconds, in several threads.
Left alone, each thread's part of the heap keeps the most that it ever held.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Final

import pyarrow as pa

from cdc.waiting import beside

EVERY_SECONDS: Final = 60.0


@contextmanager
def giving_back() -> Iterator[None]:
    """While the block lasts, a thread gives freed memory back: at once, and every minute."""
    with beside(_give_back_until, "memory"):
        yield


def _give_back_until(over: Event) -> None:
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # only glibc has it, and needs it
    while True:
        pa.default_memory_pool().release_unused()
        if trim is not None:
            trim(0)
        if over.wait(EVERY_SECONDS):
            return
