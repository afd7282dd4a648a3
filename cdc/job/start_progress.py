"""A start says that it lives for as long as it does something, also where it takes long.

The supervisor ends a start of which it hears nothing, and begins it again. What takes long before a
table is opened or a batch replayed, such as a look through the whole log, has no steps to tell of.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from cdc.state.job_state import Told

LOOK_SECONDS: Final = 10.0
"""Far below the time that the supervisor waits (``cdc/stack/servers/patience.py``)."""


@contextmanager
def told_alive(
    told: Told, is_going_on: Callable[[], bool], every: float = LOOK_SECONDS
) -> Iterator[None]:
    """Tell of a step every few seconds inside the block, as long as something goes on."""
    over = threading.Event()

    def tell() -> None:
        while not over.wait(every):
            if is_going_on():
                told.step()

    thread = threading.Thread(target=tell, name="start", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
