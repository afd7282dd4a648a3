"""A backlog, as fast as it becomes readable, and a table rebuilt from its log."""

from collections.abc import Iterator
from typing import Final

from bench.core.figure import Figure
from bench.core.room import Room
from bench.whole.burst import burst
from bench.whole.installation import Installation
from bench.whole.tables import SCHEMA, names

BACKLOG_TABLES: Final = 8


def backlog(room: Room, one: Installation, tables: int) -> Iterator[Figure]:
    """Yield the changes per second from the first commit until the last was readable."""
    sizes = room.sizes
    done = burst(
        one.source_url,
        tables=names(tables),
        changes=sizes.burst_changes,
        rows=sizes.rows_per_table,
        seed=room.seed,
    )
    cut = one.await_cut(done.lsn, sizes.patience_seconds * 5)
    seconds = cut.published_at.timestamp() - done.began
    yield Figure(
        name="sustained rate",
        way="ours",
        unit="changes/s",
        samples=(done.changes / seconds,),
        parameters={"changes": done.changes, "tables": tables},
    )


def replayed(one: Installation) -> Iterator[Figure]:
    """Yield the rows per second of a replay of one table in place, while the job runs."""
    (table,) = names(1)
    seconds = one.command("replay", f"{SCHEMA}.{table}", "--timeout", "600")
    cut = one.last_cut()
    entry = cut.entry(f"{SCHEMA}.{table}") if cut else None
    if entry is not None:
        yield Figure(
            name="rebuild",
            way="ours",
            unit="events/s",
            samples=(entry.rows_applied / seconds,),
            parameters={"events": entry.rows_applied},
            note="the request and its end are counted",
        )
