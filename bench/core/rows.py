"""Every row of what issue 28 asks for, and the figures that it is computed from. Pure."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from bench.core.figure import Figure, Measured, Parameter
from bench.core.reach import MIB, NOT_MEASURED, Result, Row, below, compared, grown
from bench.core.statistics import slope


def _apply(way: str, **parameters: Parameter) -> Callable[[Measured], Figure | None]:
    where: dict[str, Parameter] = {"keys": "uniform", **parameters}
    return lambda measured: measured.one("apply", way, **where)


def _flat(measured: Measured) -> Result:
    memory = measured.one("memory over time", "ours")
    if memory is None:
        return NOT_MEASURED
    every = float(memory.parameters["every_seconds"])
    half = memory.samples[len(memory.samples) // 2 :]  # what a start takes is no growth
    points = [(place * every, value) for place, value in enumerate(half)]
    grows = slope(points) * 3600
    seconds = len(memory.samples) * every
    met = grows < 64 * MIB if seconds >= 3600 else None  # noqa: PLR2004 - an hour
    text = f"{grows / MIB:+,.0f} MiB an hour, seen over {seconds / 60:.0f} min"
    return Result(figure=text, ratio=None, met=met)


def _bounded(name: str) -> Callable[[Measured], Result]:
    """Return how much higher the peak is in the second half of all rounds than in the first."""

    def compute(measured: Measured) -> Result:
        half, end = (measured.one(name, "ours", at=at) for at in ("half", "end"))
        return grown(_peak(half), _peak(end), at_most=1.25)

    return compute


def _peak(figure: Figure | None) -> Figure | None:
    return None if figure is None else replace(figure, samples=(max(figure.samples),))


_LIVE: Final = ("live",)
_UNIFORM: Final = ("apply",)
ROWS: Final = (
    Row(
        what="a round of 2,500 events over 7 tables, beside before",
        reach="at least 20 times cheaper",
        benchmarks=("round",),
        compute=lambda m: compared(m.one("round", "ours"), m.one("round", "before"), at_least=20),
    ),
    Row(
        what="the same round, landed to published",
        reach="under 1 s",
        benchmarks=("round",),
        compute=lambda m: below(m.one("round", "ours"), 1),
    ),
    *(
        Row(
            what=f"freshness, 500 changes/s, {tables} tables, p{share * 100:.0f}",
            reach=f"under {limit:g} s",
            benchmarks=_LIVE,
            compute=lambda m, tables=tables, limit=limit, share=share: below(  # type: ignore[misc]
                m.one("freshness", "ours", rate=500, tables=tables), limit, share
            ),
        )
        for tables, share, limit in ((8, 0.5, 1.5), (8, 0.99, 4), (50, 0.5, 3), (50, 0.99, 8))
    ),
    Row(
        what="highest sustained rate, 8 tables, beside Debezium alone",
        reach="at least 0.5",
        benchmarks=("live", "limits"),
        compute=lambda m: compared(
            m.one("sustained rate", "ours"),
            m.one("sustained rate", "Debezium alone"),
            at_least=0.5,
            more_is_better=True,
        ),
    ),
    *(
        Row(
            what=f"10,000 uniform changes into 10 M rows, beside {way}",
            reach=f"at least {least} times cheaper",
            benchmarks=_UNIFORM,
            compute=lambda m, way=way, least=least: compared(  # type: ignore[misc]
                _apply("driver", changes=10_000, rows=10_000_000)(m),
                _apply(way, changes=10_000, rows=10_000_000)(m),
                at_least=least,
            ),
        )
        for way, least in (("tuned MERGE", 50), ("tutorial MERGE", 150))
    ),
    Row(
        what="10,000 changes, from 1 M to 50 M rows",
        reach="grows by at most 1.5",
        benchmarks=_UNIFORM,
        compute=lambda m: grown(
            _apply("driver", changes=10_000, rows=1_000_000)(m),
            _apply("driver", changes=10_000, rows=50_000_000)(m),
            at_most=1.5,
        ),
    ),
    Row(
        what="100 instead of 10,000 changes into 10 M rows",
        reach="at least 10 times cheaper",
        benchmarks=_UNIFORM,
        compute=lambda m: compared(
            _apply("driver", changes=100, rows=10_000_000)(m),
            _apply("driver", changes=10_000, rows=10_000_000)(m),
            at_least=10,
        ),
    ),
    Row(
        what="scan after 200 rounds, beside the compacted table",
        reach="within 1.3",
        benchmarks=("reads",),
        compute=lambda m: grown(
            m.one("scan", "compacted"), m.one("scan", "after rounds"), at_most=1.3
        ),
    ),
    *(
        Row(
            what=f"the most {name} that a reader opens, second beside first hundred rounds",
            reach="bounded: at most 1.25",
            benchmarks=("reads",),
            compute=_bounded(name),
        )
        for name in ("data files", "bytes of the transaction log")
    ),
    Row(
        what="first snapshot of 10 M rows, beside before",
        reach="at least 10 times faster",
        benchmarks=("snapshot", "start"),
        compute=lambda m: compared(
            m.one("snapshot", "ours"),
            m.one("snapshot", "before"),
            at_least=10,
            more_is_better=True,
        ),
    ),
    Row(
        what="first snapshot of 10 M rows, beside COPY to Parquet",
        reach="within 4",
        benchmarks=("snapshot",),
        compute=lambda m: compared(
            m.one("snapshot", "ours"),
            m.one("snapshot", "COPY to Parquet"),
            at_least=1 / 4,
            more_is_better=True,
        ),
    ),
    Row(
        what="idle: 50 tables, no changes, the job",
        reach="under 0.03 of one core",
        benchmarks=_LIVE,
        compute=lambda m: below(m.one("idle", "job"), 0.03),
    ),
    *(
        Row(
            what=f"up until applying, warm, {tables} tables, beside before",
            reach="at least 2 times faster",
            benchmarks=("start",),
            compute=lambda m, tables=tables: compared(  # type: ignore[misc]
                m.one("start", "ours", tables=tables),
                m.one("start", "before", tables=tables),
                at_least=2,
            ),
        )
        for tables in (1, 52)
    ),
    Row(
        what="up until applying, from 1 to 52 tables",
        reach="hardly more: at most 1.2",
        benchmarks=("start",),
        compute=lambda m: grown(
            m.one("start", "ours", tables=1), m.one("start", "ours", tables=52), at_most=1.2
        ),
    ),
    Row(
        what="memory of the job, peak under load",
        reach="at most 1.5 GB",
        benchmarks=_LIVE,
        compute=lambda m: below(m.one("peak memory", "job", tables=8), 1.5e9),
    ),
    Row(
        what="key index, from 1 M to 50 M rows",
        reach="bytes per key bounded: at most 1.1",
        benchmarks=_UNIFORM,
        compute=lambda m: grown(
            m.one("index bytes per key", "driver", rows=1_000_000),
            m.one("index bytes per key", "driver", rows=50_000_000),
            at_most=1.1,
        ),
    ),
)

MEMORY_ROWS: Final = (
    Row(
        what="memory of the job over an hour",
        reach="flat: under 64 MiB an hour",
        benchmarks=("memory",),
        compute=_flat,
    ),
)

PEER_ROWS: Final = (
    Row(
        what="freshness p50, beside Flink CDC and Paimon, checkpoints of 1 s",
        reach="at most half",
        benchmarks=("peers",),
        compute=lambda m: compared(
            m.one("peer freshness", "ours"), m.one("peer freshness", "Flink"), at_least=2
        ),
    ),
    Row(
        what="first snapshot, rows/s, beside Flink CDC and Paimon",
        reach="at least twice",
        benchmarks=("peers",),
        compute=lambda m: compared(
            m.one("peer snapshot", "ours"),
            m.one("peer snapshot", "Flink"),
            at_least=2,
            more_is_better=True,
        ),
    ),
    Row(
        what="CPU s per 100,000 changes of our job, beside the whole of Flink",
        reach="at most its",
        benchmarks=("peers",),
        compute=lambda m: compared(
            m.one("peer CPU", "our job"), m.one("peer CPU", "Flink"), at_least=1
        ),
    ),
    Row(
        what="cuts that are torn, share",
        reach="none of ours",
        benchmarks=("peers",),
        compute=lambda m: _none_torn(m.one("torn cuts", "ours"), m.one("torn cuts", "Flink")),
    ),
)


def _none_torn(ours: Figure | None, other: Figure | None) -> Result:
    if ours is None or other is None:
        return NOT_MEASURED
    return Result(
        figure=f"{max(ours.samples):.0%} beside {other.typical:.0%}",
        ratio=None,
        met=max(ours.samples) == 0,
    )
