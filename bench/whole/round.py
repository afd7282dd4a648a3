"""One round: a transaction over seven tables, from landed to published, by ours and by before."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import psycopg
from deltalake import DeltaTable

from bench.core.alternate import alternate
from bench.core.figure import Figure, NotMeasured, Outcome
from bench.core.room import Benchmark, Room
from bench.whole.code import before, ours
from bench.whole.installation import Installation
from bench.whole.tables import Writer, lsn, names
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import log_path

TABLES: Final = 7
_ADDED: Final = ("numOutputRows", "num_added_rows")  # Spark's name, and that of delta-rs


def measure(room: Room) -> Iterator[Outcome]:
    """Yield the seconds of rounds, each on a job that is warm: ours, ours by Spark, before."""
    folder = room.fresh("round")
    by_spark = {"job": {"local_events": 0}}
    places = {
        "ours": Installation(root=folder / "ours", code=ours()),
        "by Spark": Installation(root=folder / "by-spark", code=ours(), settings=by_spark),
    }
    try:
        places["before"] = Installation(root=folder / "before", code=before())
    except CdcError as error:
        yield NotMeasured(name="round of before", why=str(error))
    for one in places.values():
        one.create(tables=TABLES, rows=room.sizes.rows_per_table)
    for _, way in alternate(list(places), 1, room.seed):
        with places[way].up():
            seconds = _rounds(room, places[way])
        yield Figure(
            name="round",
            way=way,
            unit="s",
            samples=tuple(seconds),
            parameters={"events": room.sizes.round_events, "tables": TABLES},
        )


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
    """Return when the landing with the most events between the times was committed.

    Raises INTERNAL if the log has none.
    """
    inside = [
        (_rows(commit), at)
        for commit in DeltaTable(log_path(one.config)).history(64)
        if began <= (at := _time(commit)) <= until and _rows(commit)
    ]
    if not inside:
        raise CdcError(ErrorKind.INTERNAL, "the log has no landing between commit and cut")
    return max(inside)[1]


def _time(commit: Mapping[str, Any]) -> datetime:
    return datetime.fromtimestamp(commit["timestamp"] / 1000).astimezone()


def _rows(commit: Mapping[str, Any]) -> int:
    """Return the rows that a commit added, whichever writer made it."""
    metrics = commit.get("operationMetrics") or {}
    return max((int(metrics[name]) for name in _ADDED if name in metrics), default=0)


ROUND: Final = Benchmark(
    name="round",
    title="2,500 events over seven tables, landed to published",
    measure=measure,
    in_quick=False,
)
