"""Wait for a condition that comes true by itself."""

import time
from collections.abc import Callable

from tenacity import RetryCallState, Retrying, retry_if_result, stop_after_delay

_LEAST_SECONDS = 0.2
_REST = 3


def until(condition: Callable[[], object], seconds: float = 90) -> None:
    """Wait until the condition holds; raise tenacity's RetryError after ``seconds``.

    A check that takes long, such as a command, is followed by a pause of three times as long,
    because what it waits for needs the processor too.
    """
    took = 0.0

    def look() -> bool:
        nonlocal took
        began = time.monotonic()
        held = bool(condition())
        took = time.monotonic() - began
        return held

    def pause(_state: RetryCallState) -> float:
        return max(_LEAST_SECONDS, _REST * took)

    waiting = Retrying(
        retry=retry_if_result(lambda held: not held), wait=pause, stop=stop_after_delay(seconds)
    )
    waiting(look)
