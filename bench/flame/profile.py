"""Draws a second of apply, before and after, as flame graphs."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench.apply import base
from bench.apply.driver import DriverApplier
from bench.core.figure import Figure, NotMeasured, Outcome
from bench.core.room import Benchmark, Room
from bench.core.spark import session
from bench.flame.applied import Profile, profiled
from bench.flame.graph import draw
from bench.flame.picture import save
from bench.flame.stacks import Stacks, inside, of_this_thread
from bench.whole.code import REPOSITORY, before
from cdc.errors import CdcError

APPLY: Final = f"{DriverApplier.__module__}.{DriverApplier.apply.__qualname__}"
GRAPHS: Final = "flames"
"""Folder of the graphs within that of the run."""


def measure(room: Room) -> Iterator[Outcome]:
    """Draw both graphs; yield the seconds of a batch, and how many samples each graph has."""
    folder, out = room.fresh("flame"), room.fresh(GRAPHS)
    rows = min(room.sizes.table_rows)
    with session(folder / "spark", room.sizes.spark_heap) as spark:
        made = base.make(spark, folder, rows, base.OURS)
    applier = DriverApplier(base.copy(made, folder / "after"))
    profile = profiled(applier, rows, room.seed, folder, of_this_thread)
    after = replace(profile, stacks=inside(profile.stacks, APPLY))
    yield from _drawn("after", after, rows, out)
    try:
        profile = _of_before(room, folder, base.copy(made, folder / "before"), rows)
        yield from _drawn("before", profile, rows, out)
    except CdcError as error:
        yield NotMeasured(name="profile of before", why=str(error))


def _of_before(room: Room, folder: Path, table: Path, rows: int) -> Profile:
    """Profile the code of before in a process of its own; raises a CdcError if it fails."""
    output, log = folder / "before.json", folder / "before.log"
    given = (table, rows, room.seed, room.sizes.spark_heap, output)
    before().run_module("bench.flame.before", [str(one) for one in given], log, more=REPOSITORY)
    values = json.loads(output.read_text())
    stacks = Stacks({tuple(stack): count for stack, count in values.pop("stacks")})
    return Profile(stacks=stacks, **values)


def _drawn(name: str, profile: Profile, rows: int, out: Path) -> Iterator[Figure]:
    title = (
        f"{name}: {profile.changes:,} changes into {rows:,} rows,"
        f" {profile.batches} times in {profile.seconds:.2f} s"
    )
    (out / f"flame-{name}.svg").write_text(draw(profile.stacks, title))
    save(profile.stacks, title, out / f"flame-{name}.png")
    where = {"changes": profile.changes, "rows": rows, "batches": profile.batches}
    seconds = profile.seconds / max(profile.batches, 1)
    samples = float(profile.stacks.total())
    yield Figure(name="profile", way=name, unit="samples", samples=(samples,), parameters=where)
    yield Figure(name="batch of a profile", way=name, unit="s", samples=(seconds,),
                 parameters=where)  # fmt: skip


FLAME: Final = Benchmark(
    name="flame",
    title="a second of apply, as flame graphs",
    measure=measure,
    prepare=before,
    in_quick=False,
)
