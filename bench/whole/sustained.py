"""How fast a backlog becomes readable, beside how fast Debezium alone brings it to Kafka."""

from collections.abc import Iterator
from typing import Final

from bench.core.figure import Figure, Outcome
from bench.core.room import Benchmark, Room
from bench.limits.debezium import debezium_alone
from bench.whole.burst import burst
from bench.whole.code import ours
from bench.whole.installation import Installation
from bench.whole.tables import names

TABLES: Final = 8


def measure(room: Room) -> Iterator[Outcome]:
    """Yield changes per second: ours until they were readable, Debezium's until in Kafka."""
    folder, sizes = room.fresh("sustained"), room.sizes
    yield from debezium_alone(room, folder / "debezium", tables=TABLES)
    one = Installation(root=folder / "ours", code=ours())
    one.create(tables=TABLES, rows=sizes.rows_per_table)
    with one.up():
        done = burst(one.source_url, tables=names(TABLES), changes=sizes.burst_changes,
                     rows=sizes.rows_per_table, seed=room.seed)  # fmt: skip
        cut = one.await_cut(done.lsn, sizes.patience_seconds * 5)
    seconds = cut.published_at.timestamp() - done.began
    yield Figure(
        name="sustained rate", way="ours", unit="changes/s", samples=(done.changes / seconds,),
        parameters={"changes": sizes.burst_changes, "tables": TABLES},
    )  # fmt: skip


SUSTAINED: Final = Benchmark(
    name="sustained", title="a backlog, as fast as it becomes readable", measure=measure,
    in_quick=False,
)  # fmt: skip
