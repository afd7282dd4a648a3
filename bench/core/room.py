"""Says where and how large a run measures."""

import math
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from bench.core.figure import Outcome
from bench.core.sizes import Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A directory that belongs to the run, its sizes and its seed."""

    root: Path
    sizes: Sizes
    seed: int
    console: Console
    ends: float = math.inf  # of time.monotonic: what would begin later is left out

    def has_time(self) -> bool:
        """Return whether something more may begin."""
        return time.monotonic() < self.ends

    def fresh(self, name: str) -> Path:
        """Return an empty directory."""
        place = self.root / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        return place

    def say(self, text: str) -> None:
        """Print a line of progress."""
        self.console.print(f"  {text}", style="dim", highlight=False, soft_wrap=True)


Measure = Callable[[Room], Iterator[Outcome]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """One benchmark; ``measure`` yields each figure as soon as it has it."""

    name: str
    title: str
    measure: Measure
    prepare: Callable[[], object] | None = None  # downloads, before the time of the run begins
    in_quick: bool = True  # a part of the run of two minutes
    bounded: bool = True  # left out when the time of the run is over
    section: str = "bench"  # of the page, and the name of its file of results
