"""Where and how large a run measures."""

import shutil
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
    in_quick: bool = True  # a part of the run of two minutes
