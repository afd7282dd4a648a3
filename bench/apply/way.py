"""Says what every way to apply a batch to a table has to do."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from bench.apply.base import POSITION
from bench.apply.batch import OFFSET_FROM
from cdc.lake.table.positions import Position


class Applier(Protocol):
    """Applies one batch after the other to its own copy of a table."""

    def apply(self, batch: Path, low: int, high: int) -> None:
        """Apply the batch in a Parquet file; its existing keys are from ``low`` to ``high``."""

    def summary(self) -> tuple[int, int]:
        """Return the number of rows and the sum of their revisions, as a reader sees them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way, by name; ``open_on`` starts it on a copy of the table of its kind."""

    name: str
    kind: str  # of the table: see bench.apply.base
    open_on: Callable[[Path], Applier]
    is_slow: bool = True  # bounded in time over all its cells
    upserts_only: bool = False
    note: str = ""


def after(revision: int) -> Position:
    """Return a position that is beyond every event of the revision."""
    return replace(POSITION, offset=OFFSET_FROM * (revision + 1) - 1)
