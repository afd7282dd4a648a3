"""One round: a transaction over seven tables, from landed to published, by ours and by before."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

import psycopg
from deltalake import DeltaTable

from bench.core.alternate import alternate
from bench.core.figure import Figure, NotMeasured, Outcome
from bench.core.room import Benchmark, Room
from bench.whole.code import Code, before, ours
from bench.whole.installation import Installation
from bench.whole.tables import Writer, lsn, names
from cdc.errors import CdcError
from cdc.lake.layout import log_path

TABLES: Final = 7


def measure(room: Room) -> Iterator[Outcome]:
    """Yield the seconds of rounds; the codes alternate, each time on a job that is warm."""
    folder, codes = room.fresh("round"), [ours()]
    try:
        codes.append(before())
    except CdcError as error:
        yield NotMeasured(name="round of before", why=str(error))
    places = [_installed(room, code, folder.name) for code in codes]
    samples: dict[str, list[float]] = {one.code.name: [] for one in places}
    for _, one in alternate(places, 2 if room.sizes.rounds > 1 else 1, room.seed):
        with one.up():
            samples[one.code.name] += _rounds(room, one)
    for name, seconds in samples.items():
        yield Figure(
            name="round", way=name, unit="s", samples=tuple(seconds),
            parameters={"events": room.sizes.round_events, "tables": TABLES},
        )  # fmt: skip


def _installed(room: Room, code: Code, folder: str) -> Installation:
    one = Installation(root=room.root / folder / code.name, code=code)
    one.create(tables=TABLES, rows=room.sizes.rows_per_table)
    return one


def _rounds(room: Room, one: Installation) -> list[float]:
    seconds = []
    with psycopg.connect(one.source_url, autocommit=True) as conn:
        writer = Writer(conn=conn, tables=names(TABLES), rows=room.sizes.rows_per_table,
                        number=0, writers=1, seed=room.seed)  # fmt: skip
        for _ in range(room.sizes.rounds + (room.sizes.rounds > 1)):
            began = datetime.now().astimezone()
            with conn.transaction():
                for _ in range(TABLES):
                    writer.change(room.sizes.round_events // TABLES)
            cut = one.await_cut(lsn(conn), room.sizes.patience_seconds * 4)
            landed = _landed_at(one, began, cut.published_at)
            seconds.append((cut.published_at - landed).total_seconds())
    return seconds[1:] or seconds  # the first one is of a cold job


def _landed_at(one: Installation, began: datetime, until: datetime) -> datetime:
    """Return when the landing with the most events between the times was committed."""
    landings = [
        (
            int(commit["operationMetrics"]["numOutputRows"]),
            datetime.fromtimestamp(commit["timestamp"] / 1000).astimezone(),
        )
        for commit in DeltaTable(log_path(one.config)).history(64)
        if "numOutputRows" in commit.get("operationMetrics", {})
    ]
    inside = [landing for landing in landings if began <= landing[1] <= until]
    return max(inside)[1]


ROUND: Final = Benchmark(
    name="round",
    title="2,500 events over seven tables, landed to published",
    measure=measure,
    in_quick=False,
)
