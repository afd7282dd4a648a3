"""Applies batches for a second, after two to be warm, and samples the stacks meanwhile."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from bench.apply.batch import UNIFORM, Changes, Made
from bench.apply.way import Applier
from bench.flame.stacks import Stacks

SECONDS: Final = 1.0
WARM: Final = 2
CHANGES: Final = 2_500


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Holds the stacks of so many batches of so many changes each, which took so many seconds."""

    stacks: Stacks
    changes: int
    batches: int
    seconds: float


def profiled(
    applier: Applier, rows: int, seed: int, folder: Path,
    sampling: Callable[[], AbstractContextManager[Stacks]],
) -> Profile:  # fmt: skip
    """Apply whole batches to a table of so many rows until a second is over."""
    changes = Changes(made=Made(rows), keys=UNIFORM, seed=seed)
    count = min(CHANGES, rows // 4)

    def apply() -> None:
        batch, file = changes.batch(count), folder / "batch.parquet"
        pq.write_table(batch.rows, file)
        applier.apply(file, batch.low, batch.high)

    for _ in range(WARM):
        apply()
    with sampling() as stacks:
        began, done = time.monotonic(), 0
        while time.monotonic() < began + SECONDS:
            apply()
            done += 1
        took = time.monotonic() - began
    return Profile(stacks=stacks, changes=count, batches=done, seconds=took)
