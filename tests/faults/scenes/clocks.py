"""Set the clock of single running processes, but not the machine's.

A preloaded library (libfaketime) answers for the clock. The monotonic clock is left alone, because
setting a real clock does not change it either; so are file times: a disk may have its own clock.
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
"""The file, in a process's working directory, with the offset of its clock."""
_LIBRARY: Final = "libfaketime.so.1"
_SHARED: Final = Path("/dev/shm")  # the library's shared memory


def library() -> Path | None:
    """Return the library's path; None if it is not installed or not for this machine."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        return None
    try:
        listed = files("libfaketime") or []
    except PackageNotFoundError:
        return None
    entry = next((file for file in listed if file.name == _LIBRARY), None)
    return None if entry is None else Path(str(entry.locate())).resolve()


def environment(place: Path) -> dict[str, str]:
    """Return variables that make a process and its children follow their clock files."""
    return {
        "LD_PRELOAD": str(place),
        "FAKETIME_TIMESTAMP_FILE": FILE,
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        # Otherwise waits for a monotonic time end at once, or hours late.
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
        "NO_FAKE_STAT": "1",
    }


@contextmanager
def set_back(directory: Path, seconds: int) -> Iterator[None]:
    """Set back the clocks of processes in the directory until the block ends."""
    _set(directory, -seconds)
    try:
        yield
    finally:
        _set(directory, 0)


def _set(directory: Path, seconds: int) -> None:
    """Write the file atomically: a partial file would mean another time."""
    new = directory / f"{FILE}.new"
    new.write_text(f"{seconds:+d}\n")
    new.chmod(0o644)
    new.replace(directory / FILE)


@contextmanager
def nothing_left() -> Iterator[None]:
    """Remove the library's shared memory that killed processes left behind."""
    before = set(_SHARED.glob("*faketime*"))
    try:
        yield
    finally:
        for path in set(_SHARED.glob("*faketime*")) - before:
            path.unlink(missing_ok=True)


class Clocked(Armed):
    """An installation in which the clock of every process of ``up`` can be set."""

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of commands, with the library."""
        place = library()
        assert place is not None
        return super().environment | environment(place)


@dataclass(frozen=True, slots=True)
class WithClock:
    """An embedded Postgres whose clock can be set."""

    server: Server
    clock: Mapping[str, str]

    @property
    def name(self) -> str:
        """Return the server's name."""
        return self.server.name

    def prepare(self) -> None:
        """Prepare the server."""
        self.server.prepare()

    def command(self) -> Command:
        """Return the command with the library's variables set after the change of user.

        A change of user drops them, so ``env`` sets them right before ``postgres``.
        """
        original = self.server.command()
        words = list(original.arguments)
        place = next(i for i, word in enumerate(words) if Path(word).name == "postgres")
        words[place:place] = ["env", *(f"{name}={text}" for name, text in self.clock.items())]
        return replace(original, arguments=tuple(words))

    def is_ready(self) -> bool:
        """Return whether the server is ready."""
        return self.server.is_ready()
