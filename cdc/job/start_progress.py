"""Shows the supervisor that a long start is still working.

The supervisor kills and repeats a start that reports no steps. Some work before the first table is
opened or the first batch is replayed has no steps of its own, such as scanning the whole log.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from cdc.state.job_state import JobStateFile

LOOK_SECONDS: Final = 10.0
"""How often to report; the supervisor waits far longer (``cdc/stack/servers/patience.py``)."""


@contextmanager
def reporting_alive(
    state_file: JobStateFile, is_going_on: Callable[[], bool], every: float = LOOK_SECONDS
) -> Iterator[None]:
    """Record a step every ``every`` seconds inside the block, while ``is_going_on`` says so."""
    ended = threading.Event()

    def report() -> None:
        while not ended.wait(every):
            if is_going_on():
                state_file.step()

    thread = threading.Thread(target=report, name="start", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
