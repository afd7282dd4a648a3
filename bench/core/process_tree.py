"""Processor time and memory of a process and all its descendants."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Self

import psutil

EVERY_SECONDS: Final = 0.25
WALSENDER: Final = "walsender"


@dataclass(frozen=True, slots=True)
class Usage:
    """Processor seconds since the start of a tree, also of children that ended; bytes now."""

    cpu_seconds: float
    rss_bytes: int


def usage(pid: int) -> Usage:
    """Return the usage of the process and its descendants; nothing if it is gone."""
    seconds, resident = 0.0, 0
    for process in _tree(pid):
        try:
            with process.oneshot():
                times = process.cpu_times()
                seconds += sum(times[:4])  # user, system, and those of reaped children
                resident += process.memory_info().rss
        except psutil.Error:
            continue
    return Usage(seconds, resident)


def walsender_seconds(pid: int) -> float:
    """Return the processor seconds of the walsenders among the descendants of a Postgres."""
    seconds = 0.0
    for process in _tree(pid):
        try:
            if any(WALSENDER in part for part in process.cmdline()):
                seconds += sum(process.cpu_times()[:2])
        except psutil.Error:
            continue
    return seconds


def _tree(pid: int) -> list[psutil.Process]:
    try:
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    except psutil.Error:
        return []


@dataclass(kw_only=True)
class Sampler:
    """Samples trees in the background; use it as a context manager.

    ``pids`` are the roots by name. A root that is replaced while sampling counts no further.
    """

    pids: Mapping[str, int]
    rss: dict[str, list[float]] = field(default_factory=dict)  # bytes
    cpu_seconds: dict[str, float] = field(default_factory=dict)  # during the block
    seconds: float = 0.0
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        self._before = {name: usage(pid).cpu_seconds for name, pid in self.pids.items()}
        self._thread = threading.Thread(target=self._sample, name="sampler", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.seconds = time.monotonic() - self._began
        for name, pid in self.pids.items():
            self.cpu_seconds[name] = usage(pid).cpu_seconds - self._before[name]

    def _sample(self) -> None:
        while True:
            for name, pid in self.pids.items():
                self.rss.setdefault(name, []).append(float(usage(pid).rss_bytes))
            if self._stop.wait(EVERY_SECONDS):
                return
