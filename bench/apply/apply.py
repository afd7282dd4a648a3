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
from bench.apply.batch import UNIFORM, Batch, Changes, Expected
from bench.apply.cells import Cell, TimeBox, cells, table_sizes
from bench.apply.driver import DriverApplier
from bench.apply.way import Applier, Way
from bench.apply.ways import ICEBERG_CATALOGUE, ways
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
    try:
        iceberg = artifacts.jars(artifacts.ICEBERG)
    except CdcError as error:
        iceberg = []
        yield NotMeasured(name="Iceberg MERGE", why=f"its jar did not arrive: {error}")
    with _spark(folder, room, iceberg) as spark:
        found = ways(spark, iceberg=bool(iceberg))
        _warm_up(spark, found, folder, room)
        box = TimeBox(room.sizes.slow_seconds)
        for rows in table_sizes(room.sizes):
            yield from _table(spark, found, room, box, rows)


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
    """All ways on copies of one table."""

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
    changes = Changes(rows=rows, keys=UNIFORM, seed=room.seed)
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


def _table(
    spark: SparkSession, found: list[Way], room: Room, box: TimeBox, rows: int
) -> Iterator[Outcome]:
    room.say(f"tables of {rows:,} rows")
    wanted = [way for way in found if not way.is_slow or box.has_time(way.name)]
    contest = _contest(spark, wanted, room.root / "apply" / "contest", rows)
    generators: dict[str, Changes] = {}
    for cell in cells(room.sizes):
        if cell.changes <= rows // 2:
            keys = generators.setdefault(
                cell.keys, Changes(rows=rows, keys=cell.keys, seed=room.seed)
            )
            yield from _cell(contest, cell, keys, room, box)
    contest.refuse_wrong()
    yield from _left_out(contest, found, box)
    for name, applier in contest.appliers.items():
        if isinstance(applier, DriverApplier):
            yield from _index_figures(name, applier, rows)


def _cell(
    contest: Contest, cell: Cell, keys: Changes, room: Room, box: TimeBox
) -> Iterator[Figure]:
    samples: dict[str, list[float]] = {}
    batches: dict[int, tuple[Batch, Path]] = {}
    for repetition, name in alternate(list(contest.ways), room.sizes.repetitions, room.seed):
        if contest.ways[name].is_slow and not box.has_time(name):
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


def _left_out(contest: Contest, found: list[Way], box: TimeBox) -> Iterator[NotMeasured]:
    """Name the ways that had no time for all cells of the table."""
    for way in found:
        missing = contest.cells - contest.done[way.name]
        if missing:
            yield NotMeasured(
                name=f"apply, {way.name} into {contest.rows:,} rows",
                why=f"{missing} of {contest.cells} cells: its {box.seconds:.0f} s were used up",
            )


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
    name="apply", title="one batch into one table, by every way", measure=measure
)
