"""Applies the same batches by every way, alternating, each on its own copy of one table."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from bench import artifacts
from bench.apply import base
from bench.apply.batch import APPEND, HOT, UNIFORM, Batch, Changes, Expected, Made
from bench.apply.cells import Cell, TimeBox, cells, is_usual, table_sizes
from bench.apply.driver import DriverApplier
from bench.apply.way import Applier, Way
from bench.apply.ways import ICEBERG, ICEBERG_CATALOGUE, ways
from bench.core.alternate import alternate
from bench.core.figure import Figure, NotMeasured, Outcome, Parameter
from bench.core.room import Benchmark, Room
from bench.core.spark import session
from cdc.errors import CdcError, ErrorKind

CHECKED_ROWS: Final = 10_000_000
"""Tables up to this size are compared with what they must hold."""
_DELTA: Final = "io.delta.sql.DeltaSparkSessionExtension"
_ICEBERG: Final = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


def measure(room: Room) -> Iterator[Outcome]:
    """Yield the seconds of every way in every cell that it had time for."""
    folder = room.fresh("apply")
    iceberg = []
    try:
        if not room.sizes.slow_ways or ICEBERG in room.sizes.slow_ways:
            iceberg = artifacts.jars(artifacts.ICEBERG)
    except CdcError as error:
        yield NotMeasured(name=ICEBERG, why=f"its jar did not arrive: {error}")
    with _spark(folder, room, iceberg) as spark:
        found = _chosen(ways(spark, iceberg=bool(iceberg)), room.sizes.slow_ways)
        _warm_up(spark, found, folder, room)
        for rows in table_sizes(room.sizes):
            yield from _table(spark, found, room, rows)


def _chosen(found: list[Way], names: tuple[str, ...]) -> list[Way]:
    return [way for way in found if not way.is_slow or not names or way.name in names]


@contextmanager
def _spark(folder: Path, room: Room, iceberg: list[Path]) -> Iterator[SparkSession]:
    catalogue = f"spark.sql.catalog.{ICEBERG_CATALOGUE}"
    conf = {
        "spark.sql.extensions": f"{_DELTA},{_ICEBERG}",
        catalogue: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalogue}.type": "hadoop",
        f"{catalogue}.warehouse": str(folder / "iceberg"),
    }
    with session(
        folder / "spark", room.sizes.spark_heap, iceberg, conf if iceberg else None
    ) as spark:
        yield spark


@dataclass(kw_only=True)
class Contest:
    """Lets all ways apply batches, each to its own copy of one table."""

    folder: Path
    rows: int
    ways: Mapping[str, Way]
    appliers: dict[str, Applier]
    expected: dict[str, Expected]
    cells: int = 0
    done: Counter[str] = field(default_factory=Counter)  # cells, by way

    def apply(self, name: str, batch: Batch, file: Path) -> float:
        """Let one way apply a batch; return the seconds."""
        began = time.perf_counter()
        self.appliers[name].apply(file, batch.low, batch.high)
        took = time.perf_counter() - began
        if name in self.expected:
            self.expected[name].apply(batch, upserts_only=self.ways[name].upserts_only)
        return took

    def refuse_wrong(self) -> None:
        """Raise DIFFERENT if a way has made other rows than it must have."""
        for name, expected in self.expected.items():
            found = self.appliers[name].summary()
            if found != expected.summary:
                raise CdcError(
                    ErrorKind.DIFFERENT,
                    f"{name} made a wrong table of {self.rows} rows: rows and sum of revisions",
                    detail=f"{found} instead of {expected.summary}",
                )


def _warm_up(spark: SparkSession, found: list[Way], folder: Path, room: Room) -> None:
    """Let every way apply one batch to the smallest table, so that none begins cold."""
    rows = min(room.sizes.table_rows)
    changes = Changes(made=Made(rows), keys=UNIFORM, seed=room.seed)
    contest = _contest(spark, found, folder / "warm", rows)
    batch, file = _written(changes.batch(min(1_000, rows // 4)), contest.folder)
    for name in contest.appliers:
        contest.apply(name, batch, file)
    contest.refuse_wrong()


def _contest(spark: SparkSession, found: list[Way], folder: Path, rows: int) -> Contest:
    folder.mkdir(parents=True, exist_ok=True)
    appliers = {}
    for way in found:
        made = base.make(spark, folder.parent, rows, way.kind)
        copied = base.copy(made, folder / f"{rows}-{way.name.replace(' ', '-')}")
        appliers[way.name] = way.open_on(copied)
    checked = appliers if rows <= CHECKED_ROWS else {}
    return Contest(
        folder=folder,
        rows=rows,
        ways={way.name: way for way in found},
        appliers=appliers,
        expected={name: Expected(rows=rows) for name in checked},
    )


def _table(spark: SparkSession, found: list[Way], room: Room, rows: int) -> Iterator[Outcome]:
    began, box = time.monotonic(), TimeBox(room.sizes.slow_seconds)
    wanted = [way for way in found if not way.is_slow or (rows <= way.largest and room.has_time())]
    contest = _contest(spark, wanted, room.root / "apply" / "contest", rows)
    room.say(f"tables of {rows:,} rows were made in {time.monotonic() - began:.0f} s")
    made = Made(rows)
    makers = {
        keys: Changes(made=made, keys=keys, seed=room.seed) for keys in (UNIFORM, HOT, APPEND)
    }
    for cell in cells(room.sizes):
        if cell.changes <= rows // 2:
            yield from _cell(contest, cell, makers[cell.keys], room, box)
    yield from _left_out(contest, found, box)
    try:
        contest.refuse_wrong()
    except CdcError as error:
        yield NotMeasured(name=f"apply into {rows:,} rows", why=f"{error}: {error.detail}")
    for name, applier in contest.appliers.items():
        if isinstance(applier, DriverApplier):
            yield from _index_figures(name, applier, rows)


def _cell(
    contest: Contest, cell: Cell, keys: Changes, room: Room, box: TimeBox
) -> Iterator[Figure]:
    samples: dict[str, list[float]] = {}
    batches: dict[int, tuple[Batch, Path]] = {}
    for repetition, name in alternate(list(contest.ways), room.sizes.repetitions, room.seed):
        if not _has_time(contest.ways[name], cell, repetition, room, box):
            continue
        if repetition not in batches:
            batches[repetition] = _written(keys.batch(cell.changes), contest.folder)
        took = contest.apply(name, *batches[repetition])
        samples.setdefault(name, []).append(took)
        box.spend(name, took)
    where: dict[str, Parameter] = {
        "rows": contest.rows, "changes": cell.changes, "keys": cell.keys
    }  # fmt: skip
    for name, seconds in samples.items():
        contest.done[name] += 1
        yield Figure(
            name="apply", way=name, unit="s", samples=tuple(seconds), parameters=where,
            note=contest.ways[name].note,
        )  # fmt: skip
    contest.cells += 1


def _has_time(way: Way, cell: Cell, repetition: int, room: Room, box: TimeBox) -> bool:
    """Return whether a way may apply one more batch; a slow one does so in every cell once."""
    if not way.is_slow:
        return True
    often = room.sizes.slow_repetitions if is_usual(cell) else 1
    return repetition < often and box.has_time(way.name) and room.has_time()


def _left_out(contest: Contest, found: list[Way], box: TimeBox) -> Iterator[NotMeasured]:
    """Name the ways that had no time for all cells of the table."""
    for way in found:
        missing = contest.cells - contest.done[way.name]
        why = f"{missing} of {contest.cells} cells: its {box.seconds:.0f} s or the run's were over"
        if contest.rows > way.largest:
            why = "its copy of the table would take minutes to make"
        if missing:
            yield NotMeasured(name=f"apply, {way.name} into {contest.rows:,} rows", why=why)


def _written(batch: Batch, folder: Path) -> tuple[Batch, Path]:
    path = folder / f"batch-{time.monotonic_ns()}.parquet"
    pq.write_table(batch.rows, path)
    return batch, path


def _index_figures(name: str, applier: DriverApplier, rows: int) -> Iterator[Figure]:
    held = applier.statistics()
    sizes = {"index bytes per key": applier.bytes_per_key(), "index files": float(held.files)}
    for what, value in sizes.items():
        unit = "bytes" if "bytes" in what else "files"
        yield Figure(name=what, way=name, unit=unit, samples=(value,), parameters={"rows": rows})


APPLY: Final = Benchmark(
    name="apply",
    title="one batch into one table, by every way",
    measure=measure,
    prepare=lambda: artifacts.jars(artifacts.ICEBERG),
)
