"""Freshness, cost and memory under a load at some rate; and all that shares an installation."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bench.core.figure import Figure, NotMeasured, Outcome, Parameter
from bench.core.process_tree import EVERY_SECONDS, Sampler, walsender_seconds
from bench.core.room import Benchmark, Room
from bench.core.statistics import steady_peak
from bench.whole.backlog import BACKLOG_TABLES, backlog, replayed
from bench.whole.code import ours
from bench.whole.idle import idle
from bench.whole.installation import Installation
from bench.whole.load import Load, freshness
from bench.whole.reader import reading, seen
from bench.whole.stages import stage_figures
from bench.whole.tables import SCHEMA, names
from cdc.waiting import until

MARKED: Final = 4
"""Tables whose rows the reader looks at; a cut holds all tables or none."""
PER: Final = 100_000
"""Changes to which processor time is related."""


def measure(room: Room) -> Iterator[Outcome]:
    """Yield freshness and cost for every number of tables at every rate, and more on the way."""
    folder, counts = room.fresh("live"), room.sizes.table_counts
    for tables in counts:
        one = Installation(root=folder / f"of-{tables}", code=ours())
        one.create(tables=tables, rows=room.sizes.rows_per_table)
        with one.up():
            room.say(f"{tables} tables are followed")
            for rate in room.sizes.rates:
                yield from under_load(room, one, tables, rate)
            yield from stage_figures(one.state.root, tables)
            if tables == max(counts):
                yield from idle(room, one, tables)
            if tables == _of_a_backlog(counts):
                yield from backlog(room, one, tables)
                yield from replayed(one)


def _of_a_backlog(counts: tuple[int, ...]) -> int:
    """Return the number of tables with which throughput is measured: eight, if that is one."""
    return BACKLOG_TABLES if BACKLOG_TABLES in counts else max(counts)


def under_load(room: Room, one: Installation, tables: int, rate: int) -> Iterator[Outcome]:
    """Put a load on the source, and yield what it cost and how fresh the lake was."""
    output = one.root / f"seen-{rate}.jsonl"
    load = _load(room, one, tables, rate)
    postgres = one.pids().get("postgres", 0)
    sent = walsender_seconds(postgres)
    with (
        Sampler(pids=one.pids()) as sampler,
        reading(_lake(one), [f"{SCHEMA}.{name}" for name in load.marked], output),
    ):
        with load:
            load.wait(room.sizes.live_seconds)
        one.await_cut(load.last_lsn, room.sizes.patience_seconds)
        _await_reader(load, output)
    sent = walsender_seconds(postgres) - sent
    where: dict[str, Parameter] = {"tables": tables, "rate": rate}
    yield from _fresh(load, output, where)
    yield from costs(sampler, load.changes, sent, where)
    if rate == max(room.sizes.rates):
        yield from _memory(sampler, tables)


def _load(room: Room, one: Installation, tables: int, rate: int) -> Load:
    all_tables = names(tables)
    step = max(1, tables // MARKED)
    return Load(
        url=one.source_url,
        tables=all_tables,
        marked=all_tables[::step][:MARKED],
        rows=room.sizes.rows_per_table,
        rate=rate,
        seed=room.seed,
    )


def _await_reader(load: Load, output: Path) -> None:
    """Wait until the reader has the last marker, which is in a cut already."""
    last = max((mark.id for mark in load.marks), default=0)
    until(lambda: any(id_ >= last for _, id_ in seen(output)[-1:]), 30, "the reader was not done")


def _fresh(load: Load, output: Path, where: dict[str, Parameter]) -> Iterator[Outcome]:
    seconds, lost = freshness(load.marks, seen(output))
    reached = load.changes / load.seconds
    if seconds:
        yield Figure(
            name="freshness", way="ours", unit="s", samples=tuple(seconds), parameters=where,
            note=f"{reached:,.0f} changes/s were made",
        )  # fmt: skip
    if lost or not seconds:
        yield NotMeasured(name=f"freshness, {where}", why=f"{lost} markers were never read")


def costs(
    sampler: Sampler, changes: int, walsender: float, where: dict[str, Parameter]
) -> Iterator[Figure]:
    """Yield processor seconds per 100,000 changes of every process, with the walsenders apart."""
    seconds = sampler.cpu_seconds | {"walsenders": walsender}
    followers = (name for name in sampler.cpu_seconds if name != "postgres")
    seconds["all but Postgres"] = sum(sampler.cpu_seconds[name] for name in followers)
    for name, spent in seconds.items():
        yield Figure(
            name="CPU per 100,000 changes", way=name, unit="s",
            samples=(spent / max(changes, 1) * PER,), parameters=where,
        )  # fmt: skip


def _memory(sampler: Sampler, tables: int) -> Iterator[Figure]:
    where: dict[str, Parameter] = {"tables": tables}
    for name, samples in sampler.rss.items():
        peak = steady_peak(samples)
        yield Figure(name="peak memory", way=name, unit="B", samples=(peak,), parameters=where)
    yield Figure(
        name="memory under load", way="job", unit="B", samples=tuple(sampler.rss["job"]),
        parameters=where | {"every_seconds": EVERY_SECONDS},
    )  # fmt: skip


def _lake(one: Installation) -> Path:
    return Path(one.config.lake.path)


LIVE: Final = Benchmark(
    name="live", title="freshness, cost, throughput, rebuild and rest of the whole", measure=measure
)
