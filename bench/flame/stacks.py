"""Samples the stacks of this process: those of Python by Python, those of the JVM by its JFR."""

import re
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

Stacks = Counter[tuple[str, ...]]
"""How often a stack was seen; the outermost frame is first."""

EVERY_SECONDS: Final = 0.001
_SWITCH_SECONDS: Final = 0.0005
_FRAME: Final = re.compile(r"^\s*([\w.$<>]+)\([^)]*\)(?:\s+line:.*)?$")


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


@contextmanager
def of_the_jvm(jvm: Any, file: Path) -> Iterator[Stacks]:  # noqa: ANN401 - py4j has no types
    """Record the JVM's running threads during the block, by its flight recorder."""
    stacks: Stacks = Counter()
    recording = jvm.jdk.jfr.Recording()
    for event in ("jdk.ExecutionSample", "jdk.NativeMethodSample"):
        recording.enable(event).withPeriod(jvm.java.time.Duration.ofMillis(10))
    recording.start()
    try:
        yield stacks
    finally:
        recording.stop()
        recording.dump(jvm.java.nio.file.Path.of(str(file), _strings(jvm)))
        recording.close()
    stacks.update(_recorded(jvm, file))


def _strings(jvm: Any) -> Any:  # noqa: ANN401
    """Return an empty array of texts, for a parameter of variable length."""
    return jvm.java.lang.reflect.Array.newInstance(
        jvm.java.lang.Class.forName("java.lang.String"), 0
    )


def _recorded(jvm: Any, file: Path) -> Stacks:  # noqa: ANN401
    opened = jvm.jdk.jfr.consumer.RecordingFile(jvm.java.nio.file.Path.of(str(file), _strings(jvm)))
    stacks: Stacks = Counter()
    while opened.hasMoreEvents():
        stack = parse_event(opened.readEvent().toString())
        if stack:
            stacks[stack] += 1
    opened.close()
    return stacks


def parse_event(text: str) -> tuple[str, ...]:
    """Return the stack in the text of an event of the flight recorder, outermost frame first."""
    inside, frames = False, []
    for line in text.splitlines():
        if "stackTrace = [" in line:
            inside = True
        elif inside and (found := _FRAME.match(line)):
            frames.append(found[1])
        elif inside and line.strip() == "]":
            break
    return tuple(reversed(frames))
