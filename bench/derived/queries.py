"""What a step costs for each query of Nexmark and TPC-H, beside calculating all of it anew."""

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bench.core.alternate import alternate
from bench.core.figure import Figure, NotMeasured, Outcome, Parameter
from bench.core.room import Room
from bench.core.spark import session
from bench.core.statistics import median, times_cheaper
from bench.derived.equal import differing_rows
from bench.derived.lake import Lake
from bench.derived.names import AS_A_WHOLE, BY_SCOPE, KEPT, SPARK, WHOLE
from bench.derived.suites import SUITES, Suite
from bench.derived.ways import QUIET, Derived, SparkJob
from cdc.derive.definition.definition import Definition
from cdc.errors import CdcError
from tests.suites.kept import REFUSED, SCOPED

_FIRST: Final = 2
"""The first cut that is measured: before it a table is built, and gets its inputs into memory."""


def measure(room: Room) -> Iterator[Outcome]:
    """Yield the seconds of a step of every query by each way, and how many rows differ."""
    folder = room.fresh("derived-queries")
    with session(folder / "spark", room.sizes.spark_heap, conf=QUIET) as spark:
        for suite in SUITES:
            yield from _suite(room, suite, folder / suite.name, spark)


def _suite(room: Room, suite: Suite, folder: Path, spark: SparkSession) -> Iterator[Outcome]:
    source, lake = suite.make(room.seed, room.sizes), Lake(folder / "lake")
    rows = sum(one.rows.num_rows for one in source.tables.values())
    lake.create({name: one.rows for name, one in source.tables.items()})
    sizes = []
    for _ in range(_FIRST - 1 + room.sizes.derived_steps):
        changes = source.changed(room.sizes.derived_changes)
        lake.commit(changes)
        sizes.append(sum(map(len, changes.values())))
    where: dict[str, Parameter] = {"suite": suite.name, "rows": rows, "changed": median(sizes)}
    first, *_ = suite.definitions.values()
    SparkJob(definition=first, lake=lake, folder=folder / "warm", session=spark).bring(0)
    differing: dict[str, list[float]] = {}
    until = time.monotonic() + room.sizes.derived_seconds
    for name, kept in suite.kept(source.tables).items():
        part = f"derived step, {suite.name} {name}"
        if kept.startswith(REFUSED):
            yield NotMeasured(name=part, why=f"it is {kept}")
        elif time.monotonic() > until:
            yield NotMeasured(name=part, why="the time for its suite was over")
        else:
            one = _Query(definition=suite.definitions[name], kept=kept, lake=lake,
                         folder=folder / name,
                         where=where | {"query": name, "kept": _short(kept)})  # fmt: skip
            yield from one.outcomes(room, spark, differing, part)
    for way, samples in differing.items():
        yield Figure(name="derived differing", way=way, unit="rows", samples=tuple(samples),
                     parameters=where, note="beside the table that is kept, by query")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class _Query:
    """One query of a suite, and the lake that has all cuts of its tables."""

    definition: Definition
    kept: str
    lake: Lake
    folder: Path
    where: Mapping[str, Parameter]

    def outcomes(
        self, room: Room, spark: SparkSession, differing: dict[str, list[float]], part: str
    ) -> Iterator[Outcome]:
        """Yield the seconds of a step by each way; note how many rows differ in the end."""
        whole = replace(self.definition, refresh="full")
        with (
            closing(self._derived(self.definition, "kept")) as ours,
            closing(self._derived(whole, "whole")) as anew,
        ):
            job = SparkJob(
                definition=self.definition,
                lake=self.lake,
                folder=self.folder / "spark",
                session=spark,
            )
            measured = _Measured({KEPT: ours, WHOLE: anew, SPARK: job})
            try:
                measured.take_steps(room)
                for way in (WHOLE, SPARK):
                    found = differing_rows(ours.path, measured.ways[way].path)
                    differing.setdefault(way, []).append(found)
            except (CdcError, PySparkException) as error:
                yield NotMeasured(name=part, why=str(error).splitlines()[0][:200])
                return
        yield from self._figures(measured)

    def _derived(self, definition: Definition, name: str) -> Derived:
        folder = self.folder / name
        return Derived(definition=definition, lake=self.lake, folder=folder)

    def _figures(self, measured: "_Measured") -> Iterator[Figure]:
        for way, seconds in measured.seconds.items():
            note = self._note(measured) if way == KEPT else ""
            yield Figure(name="derived step", way=way, unit="s", samples=tuple(seconds),
                         parameters=self.where, note=note)  # fmt: skip

    def _note(self, measured: "_Measured") -> str:
        """Return how the query is kept, how its steps were done, and the ratios."""
        typical = {way: median(seconds) for way, seconds in measured.seconds.items()}
        ratios = (
            f"{times_cheaper(typical[KEPT], typical[way]):,.1f} times cheaper than a {way}"
            for way in (WHOLE, SPARK)
        )
        why = [] if self.kept.startswith(SCOPED) else [self.kept]
        return "; ".join([*why, *sorted(measured.exceptions), *ratios])


def _short(kept: str) -> str:
    return BY_SCOPE if kept.startswith(SCOPED) else AS_A_WHOLE


@dataclass(slots=True)
class _Measured:
    """The ways of one query, the seconds of their steps, and why a scoped one was not."""

    ways: Mapping[str, Derived | SparkJob]
    seconds: dict[str, list[float]] = field(default_factory=dict)
    exceptions: set[str] = field(default_factory=set)

    def take_steps(self, room: Room) -> None:
        for one in self.ways.values():
            for cut in range(_FIRST if isinstance(one, Derived) else 0):
                one.bring(cut)
        steps = room.sizes.derived_steps
        for repetition, way in alternate(list(self.ways), steps, room.seed):
            if way == SPARK and repetition < steps - room.sizes.derived_spark_steps:
                continue
            one = self.ways[way]
            self.seconds.setdefault(way, []).append(one.bring(_FIRST + repetition))
            if way == KEPT and isinstance(one, Derived):
                self._note_exception(one.cost())

    def _note_exception(self, cost: Mapping[str, object]) -> None:
        if cost["mode"] == "whole":
            self.exceptions.add(f"steps as a whole: {cost['why']}")
