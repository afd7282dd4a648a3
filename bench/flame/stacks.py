"""Samples the stacks of a thread of Python."""

import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

Stacks = Counter[tuple[str, ...]]
"""How often a stack was seen; the outermost frame is first."""

EVERY_SECONDS: Final = 0.001
_SWITCH_SECONDS: Final = 0.0005


@contextmanager
def of_this_thread() -> Iterator[Stacks]:
    """Sample the calling thread during the block."""
    stacks: Stacks = Counter()
    stop, wanted = threading.Event(), threading.get_ident()

    def sample() -> None:
        while not stop.wait(EVERY_SECONDS):
            frame = sys._current_frames().get(wanted)  # noqa: SLF001 - the only way there is
            if frame is not None:
                stacks[tuple(_names(frame))] += 1

    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield stacks
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(before)


def _names(frame: FrameType | None) -> Iterator[str]:
    frames = []
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    for one in reversed(frames):
        yield f"{one.f_globals.get('__name__', '?')}.{one.f_code.co_qualname}"


def inside(stacks: Stacks, name: str) -> Stacks:
    """Return what was seen inside a frame of this name, without the frames around it."""
    found: Stacks = Counter()
    for stack, count in stacks.items():
        if name in stack:
            found[stack[stack.index(name) :]] += count
    return found
