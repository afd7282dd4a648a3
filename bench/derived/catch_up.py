"""Catching up: a million events of Nexmark in one step, by the table and by a Spark job."""

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bench.core.figure import Figure, NotMeasured, Outcome, Parameter
from bench.core.process_tree import usage
from bench.core.room import Room
from bench.core.spark import session
from bench.derived.equal import differing_rows
from bench.derived.lake import Lake
from bench.derived.market import Market
from bench.derived.names import OURS, SPARK
from bench.derived.published import FLINK
from bench.derived.suites import NEXMARK
from bench.derived.ways import QUIET, Derived, SparkJob
from cdc.derive.definition.definition import Definition
from cdc.errors import CdcError

_BEFORE: Final = 100
"""The table is there already, with one event for so many that come."""


def measure(room: Room) -> Iterator[Outcome]:
    """Yield events per second, and per second of a core, for each query and way."""
    folder, events = room.fresh("derived-catch-up"), room.sizes.catch_up_events
    market, lake = Market(room.seed, events // _BEFORE), Lake(folder / "lake")
    lake.create({name: one.rows for name, one in market.tables.items()})
    lake.commit(market.inserted(events))
    with session(folder / "spark", room.sizes.spark_heap, conf=QUIET) as spark:
        for name in FLINK:
            one = _CatchUp(NEXMARK.definitions[name], lake, folder / name, spark)
            try:
                yield from one.outcomes(room.sizes.catch_ups, {"query": name, "events": events})
            except (CdcError, PySparkException) as error:
                why = str(error).splitlines()[0][:200]
                yield NotMeasured(name=f"catch-up of {name}", why=why)


@dataclass(slots=True)
class _CatchUp:
    """One query that catches up; ``seconds`` and ``core_seconds`` are by way."""

    definition: Definition
    lake: Lake
    folder: Path
    spark: SparkSession
    seconds: dict[str, list[float]] = field(default_factory=dict)
    core_seconds: dict[str, list[float]] = field(default_factory=dict)

    def outcomes(self, times: int, where: Mapping[str, Parameter]) -> Iterator[Outcome]:
        """Let it catch up so often, and a job once; yield the rates if their rows are equal."""
        job = SparkJob(
            definition=self.definition,
            lake=self.lake,
            folder=self.folder / "spark",
            session=self.spark,
        )
        job.bring(0)
        for number in range(times):
            with closing(self._derived(number)) as ours:
                ours.bring(0)
                self._timed(OURS, ours)
        self._timed(SPARK, job)
        if differing := differing_rows(ours.path, job.path):
            yield NotMeasured(name=f"catch-up of {where['query']}", why=f"{differing} rows differ")
            return
        for name, by_way in (("catch-up", self.seconds), ("catch-up per core", self.core_seconds)):
            for way, taken in by_way.items():
                rates = tuple(float(where["events"]) / each for each in taken)
                yield Figure(name=name, way=way, unit="events/s", samples=rates, parameters=where)

    def _derived(self, number: int) -> Derived:
        folder = self.folder / f"kept-{number}"
        return Derived(definition=self.definition, lake=self.lake, folder=folder)

    def _timed(self, way: str, one: Derived | SparkJob) -> None:
        before = usage(os.getpid()).cpu_seconds
        self.seconds.setdefault(way, []).append(one.bring(1))
        spent = usage(os.getpid()).cpu_seconds - before
        self.core_seconds.setdefault(way, []).append(max(spent, 0.01))
