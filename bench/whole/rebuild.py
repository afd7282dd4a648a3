"""Rebuilds a table from the log."""

from collections.abc import Iterator
from typing import Final

from bench.core.figure import Figure, Outcome
from bench.core.room import Benchmark, Room
from bench.whole.burst import burst
from bench.whole.code import ours
from bench.whole.installation import Installation
from bench.whole.tables import SCHEMA, names


def measure(room: Room) -> Iterator[Outcome]:
    """Yield the events per second of a replay in place, while the job runs."""
    one = Installation(root=room.fresh("rebuild") / "installation", code=ours())
    rows, changes = room.sizes.rows_per_table, room.sizes.burst_changes // 4
    one.create(tables=1, rows=rows)
    with one.up():
        done = burst(one.source_url, tables=names(1), changes=changes, rows=rows, seed=room.seed)
        one.await_cut(done.lsn, room.sizes.patience_seconds * 5)
        seconds = one.command("replay", f"{SCHEMA}.{names(1)[0]}", "--timeout", "600")
    yield Figure(
        name="rebuild", way="ours", unit="events/s", samples=((rows + done.changes) / seconds,),
        parameters={"rows": rows, "changes": done.changes},
    )  # fmt: skip


REBUILD: Final = Benchmark(
    name="rebuild", title="a table rebuilt from the log", measure=measure, in_quick=False
)
