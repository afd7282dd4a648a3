"""Waiting for what comes by itself."""

from collections.abc import Callable

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed


def until(condition: Callable[[], object], seconds: float = 90) -> None:
    """Wait for a condition; tenacity's RetryError when it never holds."""
    waiting = Retrying(
        retry=retry_if_result(lambda held: not held),
        wait=wait_fixed(0.1),
        stop=stop_after_delay(seconds),
    )
    waiting(condition)
