"""A second of apply, before and after, as flame graphs."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench.apply import base
from bench.apply.batch import UNIFORM, Changes
from bench.apply.driver import DriverApplier
from bench.apply.on_spark import OursOnSpark
from bench.apply.way import Applier
from bench.core.figure import Figure, Outcome
from bench.core.room import Benchmark, Room
from bench.core.spark import session
from bench.flame.graph import draw
from bench.flame.stacks import Stacks, of_the_jvm, of_this_thread

SECONDS: Final = 1.0
WARM: Final = 2
GRAPHS: Final = "flames"
"""Folder of the graphs within that of the run."""


def measure(room: Room) -> Iterator[Outcome]:
    """Draw both graphs; yield how many samples each has, and the batches of a second."""
    folder, out = room.fresh("flame"), room.fresh(GRAPHS)
    rows = min(room.sizes.table_rows)
    with session(folder / "spark", room.sizes.spark_heap) as spark:
        made = base.make(spark, folder, rows, base.OURS)
        before = OursOnSpark(spark, base.copy(made, folder / "before"))
        after = DriverApplier(base.copy(made, folder / "after"))
        yield _profiled(room, folder, "after", after, rows, out, _python)
        yield _profiled(room, folder, "before", before, rows, out, _both(spark, folder))


Profile = Callable[[Callable[[], int]], tuple[Stacks, int]]


def _python(work: Callable[[], int]) -> tuple[Stacks, int]:
    with of_this_thread() as stacks:
        done = work()
    return stacks, done


def _both(spark: SparkSession, folder: Path) -> Profile:
    """Return a profile of the JVM, where Spark's work is; Python only waits for it."""

    def profiled(work: Callable[[], int]) -> tuple[Stacks, int]:
        with of_the_jvm(spark._jvm, folder / "before.jfr") as stacks:  # noqa: SLF001
            done = work()
        return stacks, done

    return profiled


def _profiled(  # noqa: PLR0917 - what a profile is of
    room: Room, folder: Path, name: str, applier: Applier, rows: int, out: Path, profile: Profile
) -> Outcome:
    changes = Changes(rows=rows, keys=UNIFORM, seed=room.seed)
    count = min(2_500, rows // 4)

    def apply() -> None:
        batch, file = changes.batch(count), folder / f"{name}.parquet"
        pq.write_table(batch.rows, file)
        applier.apply(file, batch.low, batch.high)

    def work() -> int:
        done, ends = 0, time.monotonic() + SECONDS
        while time.monotonic() < ends:
            apply()
            done += 1
        return done

    for _ in range(WARM):
        apply()
    stacks, done = profile(work)
    title = f"{name}: {count:,} changes into {rows:,} rows, {done} times"
    (out / f"flame-{name}.svg").write_text(draw(stacks, title))
    return Figure(name="profile", way=name, unit="samples", samples=(float(stacks.total()),),
                  parameters={"changes": count, "rows": rows, "batches": done})  # fmt: skip


FLAME: Final = Benchmark(name="flame", title="a second of apply, as flame graphs", measure=measure)
