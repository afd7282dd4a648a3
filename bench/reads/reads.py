"""Scans and look-ups of a table after many rounds, beside the same table compacted."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import files
from pathlib import Path
from random import Random
from typing import Final

import duckdb
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import SparkSession

from bench.apply import base
from bench.apply.batch import UNIFORM, Changes
from bench.apply.driver import DriverApplier
from bench.apply.way import after
from bench.core.alternate import alternate
from bench.core.figure import Figure, NotMeasured, Outcome
from bench.core.room import Benchmark, Room
from bench.core.spark import session
from cdc.config import Job
from cdc.lake.upkeep.maintenance import Maintainer, optimize, purge

ROUNDS: Final = "after rounds"
COMPACTED: Final = "compacted"
SCANS: Final = 5
_SCAN: Final = (
    "select count(*), sum(revision), sum(customer), sum(weight), max(name), max(note) from t"
)
_LOOK_UP: Final = "select * from t where id = {}"


def measure(room: Room) -> Iterator[Outcome]:
    """Yield files and bytes on the way, and the seconds of reads at the end."""
    folder, sizes = room.fresh("reads"), room.sizes
    with session(folder / "spark", sizes.spark_heap) as spark:
        path = base.make(spark, folder, sizes.read_rows, base.OURS)
        half = sizes.read_rounds // 2
        rounds = _Rounds(
            spark=spark,
            path=path,
            changes=Changes(rows=sizes.read_rows, keys=UNIFORM, seed=room.seed),
            keeper=Maintainer(str(path), Job()),
        )
        seconds = rounds.apply(range(half), sizes.read_changes)
        yield from _stock(path, "half")
        seconds += rounds.apply(range(half, sizes.read_rounds), sizes.read_changes)
        yield from _stock(path, "end")
        yield Figure(name="round of reads", way="driver", unit="s", samples=tuple(seconds),
                     note="with the upkeep that was due")  # fmt: skip
        compacted = base.copy(path, folder / COMPACTED)
        metadata = after(sizes.read_rounds).metadata()
        optimize(spark, str(compacted), metadata, below=2**62)
        purge(spark, str(compacted), metadata)
        yield from _reads(room, {ROUNDS: path, COMPACTED: compacted})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rounds:
    """Applies batches on the driver, with the job's own upkeep after each."""

    spark: SparkSession
    path: Path
    changes: Changes
    keeper: Maintainer

    def apply(self, which: range, changes: int) -> list[float]:
        """Apply a batch of so many changes in each of these rounds; return the seconds."""
        file, seconds = self.path.with_name("batch.parquet"), []
        applier = DriverApplier(self.path)
        for number in which:
            batch = self.changes.batch(changes)
            pq.write_table(batch.rows, file)
            began = time.perf_counter()
            applier.apply(file, batch.low, batch.high)
            self.keeper.committed(self.spark, after(number + 1).metadata())
            seconds.append(time.perf_counter() - began)
        return seconds


def _stock(path: Path, at: str) -> Iterator[Figure]:
    """Yield the files and bytes of the newest version, and those of its log."""
    sizes = DeltaTable(str(path)).get_add_actions()["size_bytes"].to_pylist()
    log = [file.stat().st_size for file in (path / "_delta_log").iterdir()]
    found = {
        "data files": (len(sizes), "files"),
        "bytes of data": (sum(sizes), "B"),
        "bytes of the transaction log": (sum(log), "B"),
        "entries of the transaction log": (len(log), "files"),
    }
    for name, (value, unit) in found.items():
        yield Figure(name=name, way="ours", unit=unit, samples=(float(value),),
                     parameters={"at": at})  # fmt: skip


def _reads(room: Room, places: dict[str, Path]) -> Iterator[Outcome]:
    """Yield the seconds of scans and look-ups, by two readers."""
    random = Random(room.seed)  # noqa: S311 - no secret
    ids = [random.randrange(room.sizes.read_rows) for _ in range(room.sizes.lookups)]
    readers: dict[str, Callable[[Path], Callable[[str], None]]] = {"": by_delta_rs}
    try:
        by_duckdb(next(iter(places.values())))("select 1")
        readers[" by DuckDB"] = by_duckdb
    except duckdb.Error as error:
        yield NotMeasured(name="reads by DuckDB", why=str(error).splitlines()[0])
    for reader, opened in readers.items():
        queries = {way: opened(path) for way, path in places.items()}
        for what, texts in {"scan": [_SCAN] * SCANS, "look-up": map(_LOOK_UP.format, ids)}.items():
            yield from _timed(f"{what}{reader}", queries, list(texts), room.seed)


def _timed(
    name: str, queries: dict[str, Callable[[str], None]], texts: list[str], seed: int
) -> Iterator[Figure]:
    samples: dict[str, list[float]] = {way: [] for way in queries}
    for query in queries.values():
        query(texts[0])  # both files of the cache are warm
    for number, way in alternate(list(queries), len(texts), seed):
        began = time.perf_counter()
        queries[way](texts[number])
        samples[way].append(time.perf_counter() - began)
    for way, seconds in samples.items():
        yield Figure(name=name, way=way, unit="s", samples=tuple(seconds))


def by_delta_rs(path: Path) -> Callable[[str], None]:
    """Return a function that runs a query by delta-rs, which opens the table each time."""

    def query(text: str) -> None:
        QueryBuilder().register("t", DeltaTable(str(path))).execute(text).read_all()

    return query


def by_duckdb(path: Path) -> Callable[[str], None]:
    """Return a function that runs a query by DuckDB; raises duckdb.Error without its extension."""
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    found = files("duckdb-extension-delta") or ()
    for extension in (file for file in found if file.suffix.startswith(".duck")):
        connection.execute(f"load '{extension.locate()}'")

    def query(text: str) -> None:
        scanned = text.replace("from t", f"from delta_scan('{path}')")
        connection.execute(scanned).fetchall()

    return query


READS: Final = Benchmark(
    name="reads",
    title="scans and look-ups after many rounds, and the files",
    measure=measure,
    in_quick=False,
)
