"""Ten derived tables of Nexmark in a running job: what they add to a round and to freshness."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import psycopg

from bench.core.figure import Figure, NotMeasured, Outcome, Parameter
from bench.core.room import Room
from bench.derived import source
from bench.derived.market import Market
from bench.derived.names import ALL, LAGGING, NONE
from bench.whole.code import ours
from bench.whole.installation import Installation
from bench.whole.load import Mark, freshness
from bench.whole.readable import await_rows
from bench.whole.reader import reading, seen
from bench.whole.round import round_seconds
from cdc.lake.layout import ledger_path
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.tables import TableState
from cdc.waiting import until
from tests.suites.nexmark.queries import QUERIES

TEN: Final = ("q0", "q1", "q2", "q3", "q4", "q5", "q7", "q8", "q15", "q20")
RATE: Final = 500  # changes per second
_PATIENT: Final = 30.0
"""A cut waits for all of its derived tables: what they add is seen whole."""
_SHORT: Final = 0.1
"""A cut waits no longer, and its derived tables lag."""
_KEPT_CUTS: Final = 64


def measure(room: Room) -> Iterator[Outcome]:
    """Yield rounds and freshness without derived tables, with ten, and with ten that lag."""
    one = Installation(root=room.fresh("derived-ten") / "ten", code=ours())
    market = Market(room.seed, room.sizes.ten_events)
    one.install(
        source.SCHEMA,
        lambda url: source.create(url, market),
        derived={"seconds": _PATIENT},
    )
    with one.up():
        await_rows(one, _rows(market), room.sizes.patience_seconds * 4)
        yield from _under_changes(room, one, market, NONE)
        define(one.root / "derived")
        one.command("apply-config")
        until(lambda: _states(one.last_cut()) == {TableState.STREAMING.value},
              room.sizes.patience_seconds, "the derived tables were not built")  # fmt: skip
        yield from _under_changes(room, one, market, ALL)
        one.command("derived", "verify")
    one.configure(source.SCHEMA, derived={"seconds": _SHORT})
    with one.up():
        yield from _under_changes(room, one, market, LAGGING)
        yield _lagging_cuts(one)


def define(folder: Path) -> None:
    """Write the ten definitions into a folder."""
    folder.mkdir()
    for name in TEN:
        text = f"/* ---\nrefresh: auto\n--- */\n{QUERIES[name]}\n"
        (folder / f"marts.{name}.sql").write_text(text)


def _rows(market: Market) -> dict[str, int]:
    return {f"{source.SCHEMA}.{n}": market.tables[n].rows.num_rows for n in source.TABLES}


def _states(cut: LedgerRow | None) -> set[str]:
    return set() if cut is None else {entry.state for entry in cut.derived}


def _under_changes(room: Room, one: Installation, market: Market, way: str) -> Iterator[Outcome]:
    where: dict[str, Parameter] = {"events": room.sizes.round_events, "rows": market.events}
    with psycopg.connect(one.source_url, autocommit=True) as conn:
        seconds = round_seconds(
            one,
            conn,
            lambda: source.change(conn, market, room.sizes.round_events),
            room.sizes.ten_rounds,
            room.sizes.patience_seconds * 2,
        )
    yield Figure(name="derived round", way=way, unit="s", samples=tuple(seconds), parameters=where)
    output = one.root / f"seen-{way.replace(' ', '-')}.jsonl"
    tables = [f"{source.SCHEMA}.{name}" for name in source.TABLES]
    with reading(Path(one.config.lake.path), tables, output):
        marks = source.load(one.source_url, market, rate=RATE, seconds=room.sizes.ten_seconds)
        one.await_cut(marks[-1].lsn, room.sizes.patience_seconds)
        until(lambda: any(id_ >= marks[-1].id for _, id_ in seen(output)[-1:]), 30,
              "the reader was not done")  # fmt: skip
    yield from _fresh(marks, seen(output), way)


def _fresh(marks: list[Mark], found: list[tuple[float, int]], way: str) -> Iterator[Outcome]:
    seconds, lost = freshness(marks, found)
    if seconds:
        yield Figure(name="derived freshness", way=way, unit="s", samples=tuple(seconds),
                     parameters={"rate": RATE}, note="of the captured tables")  # fmt: skip
    if lost or not seconds:
        yield NotMeasured(name=f"freshness {way}", why=f"{lost} markers were never read")


def _lagging_cuts(one: Installation) -> Figure:
    """Return the share of the newest cuts in which a derived table lags."""
    cuts = Ledger(ledger_path(one.config)).newest(_KEPT_CUTS)
    lagging = sum(TableState.LAGGING.value in _states(cut) for cut in cuts)
    return Figure(name="cuts with a lagging table", way=LAGGING, unit="share",
                  samples=(lagging / len(cuts),))  # fmt: skip
