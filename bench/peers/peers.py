"""wal2lake beside Flink CDC and Paimon: alternating runs of the same load."""

from collections.abc import Iterator
from typing import Final

from bench.core.figure import Figure, Outcome, Parameter
from bench.core.room import Benchmark, Room
from bench.peers.flink_files import class_path
from bench.peers.runs import CHECKPOINT_SECONDS, RATE, TABLES, Seen, run_flink, run_ours

OURS: Final = "ours"
FLINK: Final = "Flink"
_SHARED: Final = frozenset({"postgres"})


def measure(room: Room) -> Iterator[Outcome]:
    """Yield the figures of both; the samples of a figure are those of all runs."""
    folder, jars = room.fresh("peers"), class_path()
    runs: dict[str, list[Seen]] = {OURS: [], FLINK: []}
    for number in range(room.sizes.peer_rounds):
        order = [OURS, FLINK] if number % 2 == 0 else [FLINK, OURS]
        for name in order:
            root = folder / f"{name}-{number}"
            seen = run_ours(room, root) if name == OURS else run_flink(room, root, jars)
            room.say(f"run {number + 1} of {name}: {seen.snapshot:,.0f} rows/s")
            runs[name].append(seen)
    for name, all_seen in runs.items():
        yield from _figures(name, all_seen)
    yield _cpu("our job", [seen.cpu["job"] for seen in runs[OURS]])


def _figures(name: str, runs: list[Seen]) -> Iterator[Figure]:
    yield _figure("peer snapshot", name, "rows/s", [run.snapshot for run in runs])
    yield _figure("peer freshness", name, "s", [s for run in runs for s in run.freshness])
    for number, run in enumerate(runs, 1):
        yield _figure("peer freshness of a run", name, "s", run.freshness, run=number)
    yield _cpu(name, [_without_source(run.cpu) for run in runs])
    yield _figure("peer CPU of walsenders", name, "s", [run.walsenders for run in runs])
    yield _figure("peer memory", name, "B", [_without_source(run.memory) for run in runs])
    yield _figure("torn cuts", name, "share", [run.torn for run in runs])


def _without_source(by_process: dict[str, float]) -> float:
    return sum(value for process, value in by_process.items() if process not in _SHARED)


def _cpu(way: str, samples: list[float]) -> Figure:
    return _figure("peer CPU", way, "s", samples)


def _figure(name: str, way: str, unit: str, samples: list[float], **more: Parameter) -> Figure:
    where: dict[str, Parameter] = {"rate": RATE, "tables": TABLES, **more}
    if way == FLINK:
        where["checkpoint_seconds"] = CHECKPOINT_SECONDS
    return Figure(name=name, way=way, unit=unit, samples=tuple(samples), parameters=where)


PEERS: Final = Benchmark(name="peers", title="beside Flink CDC and Paimon", measure=measure)
