"""A table whose query names ``cut_time()`` moves with the time of the cuts, not with rows alone."""

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pytest

from cdc.derive.definition.declared import declared
from cdc.derive.definition.definition import Definition
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.state.derived_requests import pauses
from cdc.tables import TableId
from tests.unit.derive.keep.test_any_number_of_cuts import (
    STEPS,
    Row,
    ends,
    in_any_cuts,
    made,
    rows_after,
    the_same_after_a_rebuild,
)
from tests.unit.derive.keep.test_scoped_steps import costs, whole
from tests.unit.derive.small_lake import SmallLake, contents, rows_of

ORDERS: Final = pa.schema(
    [("id", pa.int64()), ("who", pa.string()), ("at", pa.timestamp("us", "UTC"))]
)
START: Final = datetime(2024, 1, 31, 12, tzinfo=UTC)
WEEK: Final = timedelta(days=7)
STEP: Final = timedelta(hours=5)
TABLES: Final = {
    "recent": "SELECT o.id, o.who, o.at FROM shop.orders AS o\n"
    "WHERE o.at > cut_time() - INTERVAL '7 days' AND o.at <= cut_time()",
    "by_who": "SELECT who, count(*) AS n FROM marts.recent GROUP BY who",
}


@pytest.fixture
def tables(tmp_path: Path) -> list[Definition]:
    return defined(tmp_path, TABLES)


def defined(folder: Path, texts: dict[str, str]) -> list[Definition]:
    (folder / "derived").mkdir()
    for name, text in texts.items():
        (folder / "derived" / f"marts.{name}.sql").write_text(text)
    found = declared(folder / "derived", [TableId("shop", "orders")])
    assert not found.problems
    return list(found.definitions)


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path, {"orders": ORDERS}, committed_at=START)


def order(random: Random, number: int) -> Row:
    """Return an order of any time; the cuts pass some, and leave others behind."""
    at = START + random.uniform(-0.5, 1.1) * STEPS * STEP
    at = START + STEPS * STEP - WEEK if not number % 9 else at  # just no more, in the end
    return {"id": number, "who": random.choice("abc"), "at": random.choice([None, *[at] * 9])}


def by_hand(rows: Sequence[Row], now: datetime) -> list[tuple[Any, ...]]:
    """Return the orders of the last seven days."""
    inside = [r for r in rows if r["at"] is not None and timedelta(0) <= now - r["at"] < WEEK]
    return sorted((tuple(row.values()) for row in inside), key=repr)


@in_any_cuts
def test_orders_of_the_last_seven_days(
    tmp_path: Path, tables: list[Definition], cuts: Sequence[int]
) -> None:
    found = []
    for number in cuts:
        lake = SmallLake(tmp_path / str(number), {"orders": ORDERS})
        with closing(lake.keep(*tables)) as kept:
            for end in ends(number):
                rows, lake.committed_at = rows_after(end, order), START + end * STEP
                lake.set(orders=rows)
                last = made(kept, lake, tables)
                recent, by_who = map(rows_of, last)
                assert recent == by_hand(rows, lake.committed_at)
                assert Counter(dict(by_who)) == Counter(row[1] for row in recent)
            found.append(the_same_after_a_rebuild(kept, lake, tables, last))

    assert 3 < len(recent) < len(rows) / 2
    assert found == found[:1] * len(cuts)


def both(lake: SmallLake, tables: Sequence[Definition], *times: datetime | None) -> list[Any]:
    """Return the entries of both tables at cuts of these times, over the same rows."""
    found = []
    with closing(lake.keep(*tables)) as kept:
        for lake.committed_at in times:
            found.append(list(kept.entries(lake.row())))
    return found


def ids(entry: DerivedEntry) -> list[int]:
    return [row[0] for row in rows_of(entry)]


def orders(*days: float) -> list[Row]:
    """Return an order for each, so many days before START."""
    return [{"id": n, "who": "a", "at": START - timedelta(days=d)} for n, d in enumerate(days)]


def test_time_alone_moves_it_and_what_is_over_it(lake: SmallLake, tables: list[Definition]) -> None:
    lake.set(orders=orders(6.5, 1, -0.5))

    (first, second) = both(lake, tables, START, START + timedelta(days=1))

    assert [ids(one[0]) for one in (first, second)] == [[0, 1], [1, 2]]
    assert rows_of(first[1]) == rows_of(second[1]) == [("a", 2)]
    assert [one.at_cut for one in second] == [2, 2]
    assert costs(second[0])[-1] == whole("cut_time() differs at each cut")


def test_the_bounds_are_exact(lake: SmallLake, tables: list[Definition]) -> None:
    lake.set(orders=orders(7))
    micro = timedelta(microseconds=1)

    found = both(lake, tables, START - micro, START, START + micro)

    assert [ids(recent) for recent, _ in found] == [[0], [], []]


def test_nothing_is_committed_where_nothing_differs(
    lake: SmallLake, tables: list[Definition]
) -> None:
    lake.set(orders=orders(1))

    found = both(lake, tables, START, START + STEP, START + 2 * STEP)

    assert [(recent.version, recent.at_cut) for recent, _ in found] == [(0, 1), (0, 2), (0, 3)]


def test_a_clock_that_is_set_back_sets_it_back(lake: SmallLake, tables: list[Definition]) -> None:
    lake.set(orders=orders(6.5, 1, -0.5))

    found = both(lake, tables, START, START + timedelta(days=1), START)

    assert contents(found[2][0]) == contents(found[0][0])


def test_before_the_first_commit_there_are_no_rows(
    lake: SmallLake, tables: list[Definition]
) -> None:
    lake.set(orders=orders(1))

    (before, after) = both(lake, tables, None, START)

    reason = "the cut has no commit, and cut_time() no value yet"
    assert [(one.state, one.version) for one in before] == [("building", -1)] * 2
    assert before[0].reason == reason
    assert [(one.state, one.rows) for one in after] == [("streaming", 1)] * 2


def test_in_a_new_epoch_it_waits_for_a_commit(lake: SmallLake, tables: list[Definition]) -> None:
    lake.set(orders=orders(1))

    (first, waiting) = both(lake, tables, START, None)

    assert [one.state for one in waiting] == ["lagging"] * 2
    assert [one.at_cut for one in waiting] == [1, 1]
    assert waiting[0].version == first[0].version


def test_a_table_that_fails_is_tried_at_the_next_time(tmp_path: Path, lake: SmallLake) -> None:
    """The time alone may put it right, here a key that is not unique."""
    keyed = f"/* ---\nkey: [who]\n--- */\n{TABLES['recent']}"
    lake.set(orders=orders(6.5, 1))

    found = both(lake, defined(tmp_path, {"recent": keyed}), START, START + timedelta(days=1))

    assert [entry.state for (entry,) in found] == ["stopped", "streaming"]


def test_one_that_catches_up_has_the_time_of_the_cut_to_which_it_comes(
    lake: SmallLake, tables: list[Definition]
) -> None:
    lake.set(orders=orders(6.5, 1, -0.5))
    paused, recent = pauses(lake.folder), tables[0].table
    with closing(lake.keep(*tables, pauses=paused)) as kept:
        kept.entries(lake.row())
        paused.ask(recent)
        lake.committed_at = START + timedelta(days=30)
        (waiting, _) = kept.entries(lake.row())
        paused.done(recent)
        lake.committed_at = START + timedelta(days=1)
        (last, _) = kept.entries(lake.row())

    assert (ids(waiting), waiting.state, waiting.at_cut) == ([0, 1], "lagging", 1)
    assert (ids(last), last.state, last.at_cut) == ([1, 2], "streaming", 3)


def test_too_many_rows_are_refused_as_for_any_whole_query(
    lake: SmallLake, tables: list[Definition]
) -> None:
    lake.set(orders=orders(*range(5)))
    with closing(lake.keep(tables[0], full_rows=4)) as kept:
        (entry,) = kept.entries(lake.row())

    assert entry.state == "stopped"
    assert entry.reason == (
        "its inputs have 5 rows, and it can only be calculated as a whole: "
        "cut_time() differs at each cut; "
        "remedy: set refresh: full in the definition, or raise derived.full_rows"
    )
