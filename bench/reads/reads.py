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
from bench.apply.batch import UNIFORM, Changes, Made
from bench.apply.driver import DriverApplier
from bench.apply.way import after
from bench.core.alternate import alternate
from bench.core.figure import Figure, NotMeasured, Outcome
from bench.core.room import Benchmark, Room
from bench.core.spark import session
from cdc.config import Job
from cdc.lake.upkeep.kept_versions import HOUR, KeptVersions
from cdc.lake.upkeep.maintenance import Maintainer, optimize, purge

ROUNDS: Final = "after rounds"
COMPACTED: Final = "compacted"
KEPT_SECONDS: Final = 1
"""How long old versions are kept. A checkpoint names the files that were removed in that time, so
what a reader opens grows until it is over; a table keeps at least a quarter of an hour."""
SCANS: Final = 5
STOCK: Final = {
    "data files": "files",
    "bytes of data": "B",
    "bytes of the transaction log": "B",
    "files of the transaction log": "files",
}
_SCAN: Final = (
    "select count(*), sum(revision), sum(customer), sum(weight), max(name), max(note) from t"
)
_LOOK_UP: Final = "select * from t where id = {}"


def measure(room: Room) -> Iterator[Outcome]:
    """Yield files and bytes on the way, and the seconds of reads at the end."""
    folder, sizes = room.fresh("reads"), room.sizes
    with session(folder / "spark", sizes.spark_heap) as spark:
        path = base.make(spark, folder, sizes.read_rows, base.OURS)
        policy = Job(vacuum_retention_hours=KEPT_SECONDS / HOUR)
        keeper = Maintainer(str(path), policy)
        KeptVersions(str(path), policy, time.monotonic, None).keep(spark, after(0).metadata())
        rounds = Rounds(
            spark=spark,
            path=path,
            changes=Changes(made=Made(sizes.read_rows), keys=UNIFORM, seed=room.seed),
            keeper=keeper,
        )
        half = sizes.read_rounds // 2
        for at, which in {"half": range(half), "end": range(half, sizes.read_rounds)}.items():
            yield from rounds.apply(which, sizes.read_changes, at)
        compacted = base.copy(path, folder / COMPACTED)
        metadata = after(sizes.read_rounds).metadata()
        optimize(spark, str(compacted), metadata, below=2**62)
        purge(spark, str(compacted), metadata)
        yield from _reads(room, {ROUNDS: path, COMPACTED: compacted})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """Applies batches on the driver, with the job's own upkeep after each."""

    spark: SparkSession
    path: Path
    changes: Changes
    keeper: Maintainer

    def apply(self, which: range, changes: int, at: str) -> Iterator[Figure]:
        """Apply a batch in each of these rounds; yield their seconds, and the stock after each."""
        file, seconds = self.path.with_name("batch.parquet"), []
        applier, stocks = DriverApplier(self.path), []
        for number in which:
            batch = self.changes.batch(changes)
            pq.write_table(batch.rows, file)
            began = time.perf_counter()
            applier.apply(file, batch.low, batch.high)
            self.keeper.committed(self.spark, after(number + 1).metadata())
            seconds.append(time.perf_counter() - began)
            stocks.append(stock(self.path))
        for name, unit in STOCK.items():
            samples = tuple(one[name] for one in stocks)
            yield Figure(name=name, way="ours", unit=unit, samples=samples, parameters={"at": at})
        yield Figure(
            name="round of reads",
            way="driver",
            unit="s",
            samples=tuple(seconds),
            parameters={"at": at},
            note="with the upkeep that was due",
        )


def stock(path: Path) -> dict[str, float]:
    """Return the files and bytes that a reader of the newest version has to open."""
    sizes = DeltaTable(str(path)).get_add_actions()["size_bytes"].to_pylist()
    log = path / "_delta_log"
    newest = max((_version(file) for file in log.glob("*.checkpoint*.parquet")), default=-1)
    checkpoint = [f for f in log.glob("*.checkpoint*.parquet") if _version(f) == newest]
    entries = [f for f in log.glob("*.json") if _version(f) > newest]
    read = [file.stat().st_size for file in checkpoint + entries]
    values = (len(sizes), sum(sizes), sum(read), len(read))
    return dict(zip(STOCK, map(float, values), strict=True))


def _version(file: Path) -> int:
    return int(file.name.partition(".")[0])


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
