"""Clocks of single processes, which are set while they run; that of the machine is left alone.

A library, loaded before others, answers for the clock. The monotonic clock is not touched, as no
setting of a real one touches it, and neither are the times of files: a disk may have its own clock.
"""

import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Final

from cdc.stack.process.process import Command
from cdc.stack.servers.server import Server
from tests.faults.bank.armed import Armed

FILE: Final = "clock"
"""By how much a clock is off, in the directory in which its process works."""
_LIBRARY: Final = "libfaketime.so.1"
_SHARED: Final = Path("/dev/shm")  # where the library keeps what its processes share


def library() -> Path | None:
    """Where it is; None where it is not installed, or not for this machine."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return None
    try:
        listed = files("libfaketime") or []
    except PackageNotFoundError:
        return None
    found = next((file for file in listed if file.name == _LIBRARY), None)
    return None if found is None else Path(str(found.locate())).resolve()


def environment(place: Path) -> dict[str, str]:
    """What makes a process, and those that it starts, go by the files."""
    return {
        "LD_PRELOAD": str(place),
        "FAKETIME_TIMESTAMP_FILE": FILE,
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        # Else waits for a monotonic time end at once, or hours late.
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
        "NO_FAKE_STAT": "1",
    }


@contextmanager
def set_back(directory: Path, seconds: int) -> Iterator[None]:
    """The clock of what works there jumps, and is right again after the block."""
    _set(directory, -seconds)
    try:
        yield
    finally:
        _set(directory, 0)


def _set(directory: Path, seconds: int) -> None:
    """At once: a file that is written in part would be another time."""
    made = directory / f"{FILE}.new"
    made.write_text(f"{seconds:+d}\n")
    made.chmod(0o644)
    made.replace(directory / FILE)


@contextmanager
def nothing_left() -> Iterator[None]:
    """What processes that were killed have left of the library is removed."""
    before = set(_SHARED.glob("*faketime*"))
    try:
        yield
    finally:
        for path in set(_SHARED.glob("*faketime*")) - before:
            path.unlink(missing_ok=True)


class Clocked(Armed):
    """All that ``up`` starts has a clock that can be set."""

    @property
    def environment(self) -> dict[str, str]:
        place = library()
        assert place is not None
        return super().environment | environment(place)


@dataclass(frozen=True, slots=True)
class WithClock:
    """Postgres with a clock that can be set."""

    server: Server
    clock: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.server.name

    def prepare(self) -> None:
        self.server.prepare()

    def command(self) -> Command:
        """The library does not survive a change of the user: it is loaded by what comes after."""
        found = self.server.command()
        words = list(found.arguments)
        place = next(i for i, word in enumerate(words) if Path(word).name == "postgres")
        words[place:place] = ["env", *(f"{name}={text}" for name, text in self.clock.items())]
        return replace(found, arguments=tuple(words))

    def is_ready(self) -> bool:
        return self.server.is_ready()
