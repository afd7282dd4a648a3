"""Stops a job from writing to a lake that it may no longer hold, before each of its writes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_CHECKS: dict[str, Callable[[], None]] = {}


@contextmanager
def fenced(lake: str, check: Callable[[], None]) -> Iterator[None]:
    """Have ``check`` called before each write below ``lake``; it raises to prevent the write."""
    _CHECKS[lake] = check
    try:
        yield
    finally:
        del _CHECKS[lake]


def refuse_fenced(path: str) -> None:
    """Raise what the check of the lake raises that has ``path``; nothing without such a check."""
    for lake, check in list(_CHECKS.items()):
        if f"{path}/".startswith(f"{lake}/"):
            check()
