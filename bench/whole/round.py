"""Times a round: a transaction over seven tables, from landed to published, by ours and before."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import psycopg
from deltalake import DeltaTable

from bench.core.alternate import alternate
from bench.core.figure import Figure, NotMeasured, Outcome
from bench.core.room import Benchmark, Room
from bench.whole.code import BEFORE_NAME, OURS_NAME, before, ours
from bench.whole.installation import Installation
from bench.whole.readable import await_all
from bench.whole.tables import Writer, lsn, names
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import log_path

TABLES: Final = 7
_ADDED: Final = ("numOutputRows", "num_added_rows")  # Spark's name, and that of delta-rs


def measure(room: Room) -> Iterator[Outcome]:
    """Yield the seconds of rounds, each on a job that is warm: ours, and before."""
    folder, rows = room.fresh("round"), room.sizes.round_rows
    places = {OURS_NAME: Installation(root=folder / "ours", code=ours())}
    try:
        places[BEFORE_NAME] = Installation(root=folder / "before", code=before())
    except CdcError as error:
        yield NotMeasured(name="round of before", why=str(error))
    for _, way in alternate(list(places), 1, room.seed):
        one = places[way]
        one.create(tables=TABLES, rows=rows)
        with one.up():
            await_all(one, tables=TABLES, rows=rows, seconds=room.sizes.patience_seconds * 4)
            seconds = _rounds(room, one, room.sizes.rounds[way])
        yield Figure(
            name="round",
            way=way,
            unit="s",
            samples=tuple(seconds),
            parameters={"events": room.sizes.round_events, "tables": TABLES},
        )


def _rounds(room: Room, one: Installation, rounds: int) -> list[float]:
    with psycopg.connect(one.source_url, autocommit=True) as conn:
        writer = Writer(conn=conn, tables=names(TABLES), rows=room.sizes.round_rows,
                        number=0, writers=1, seed=room.seed)  # fmt: skip

        def change() -> None:
            for _ in range(TABLES):
                writer.change(room.sizes.round_events // TABLES)

        return round_seconds(one, conn, change, rounds, room.sizes.patience_seconds * 4)


def round_seconds(
    one: Installation,
    conn: psycopg.Connection,
    change: Callable[[], None],
    rounds: int,
    patience: float,
) -> list[float]:
    """Return the seconds of so many rounds, after one more by which the job gets warm.

    ``change`` makes the changes of a round by the connection, in one transaction. Each round is
    from landed to published. Raises TIMEOUT after ``patience`` seconds.
    """
    seconds = []
    for _ in range(1 + rounds):
        began = datetime.now().astimezone()
        with conn.transaction():
            change()
        cut = one.await_cut(lsn(conn), patience)
        landed = _landed_at(one, began, cut.published_at)
        seconds.append((cut.published_at - landed).total_seconds())
    return seconds[1:]


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
    prepare=before,
    in_quick=False,
)
