"""Derived tables are calculated in lanes beside each other, and are the same as in one."""

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, ParamSpec, TypeVar

import pytest

from cdc.derive.definition.definition import Definition
from cdc.derive.keep.lanes import Lanes, shared_out
from cdc.derive.keep.table_steps import TableSteps
from cdc.derive.step.ready import Steps
from cdc.derive.step.resident import ResidentTables
from cdc.derive.step.shared import Shared
from cdc.derive.step.whole_query import load_whole
from cdc.lake.files.file_store import StoreError
from tests.unit.derive.events import read
from tests.unit.derive.orders import order
from tests.unit.derive.small_lake import SmallLake, defined, rows_of

P = ParamSpec("P")
T = TypeVar("T")
LONG = 60.0  # seconds; nothing takes so long
OWN = [
    read(
        f"SELECT t.who, count(*) AS n, sum(t.id) + {n} AS ids FROM shop.orders AS t GROUP BY t.who",
        f"by_{n}",
    )
    for n in range(4)
]


def names(shares: Sequence[Sequence[Definition]]) -> list[list[str]]:
    return [[one.table.name for one in share] for share in shares]


def before(call: Callable[P, T], look: Callable[..., object]) -> Callable[P, T]:
    """Return what looks at what it is called with, and then does the call."""

    def both(*given: P.args, **more: P.kwargs) -> T:
        look(*given)
        return call(*given, **more)

    return both


def table(name: str, *inputs: str, **more: object) -> Definition:
    return defined(name, "", *(inputs or ["shop.orders"]), **more)


def test_tables_are_shared_out_evenly_in_their_order() -> None:
    found = shared_out([table(name) for name in "abcde"], 2)

    assert names(found) == [["a", "c", "e"], ["b", "d"]]


def test_a_table_is_in_the_lane_of_its_inputs() -> None:
    chain = [
        table("a"),
        table("b"),
        table("c", "marts.a"),
        table("d"),
        table("e", "marts.c", "marts.d"),
    ]

    assert names(shared_out(chain, 2)) == [["a", "c", "d", "e"], ["b"]]


def test_what_is_made_of_events_is_in_one_lane() -> None:
    of_events = [table("h", history=object()), table("i", late_rows=object())]
    found = shared_out(
        [table("a"), of_events[0], table("b"), of_events[1], table("c", "marts.i")], 2
    )

    assert names(found) == [["h", "i", "c"], ["a", "b"]]


@pytest.mark.parametrize("most", [0, 1, 3])
def test_there_are_no_empty_lanes(most: int) -> None:
    assert names(shared_out([table("a")], most)) == [["a"]]
    assert names(shared_out([], most)) == [[]]


class Meeting:
    """Has each step begin together with a step of the other lane; knows their threads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, parties: int = 2) -> None:
        self.barrier = threading.Barrier(parties, timeout=LONG)
        self.threads: set[int] = set()
        monkeypatch.setattr(TableSteps, "step", before(TableSteps.step, self._meet))

    def _meet(self, *_: object) -> None:
        self.threads.add(threading.get_ident())
        self.barrier.wait()


def test_two_tables_are_calculated_at_the_same_time(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.lanes = 2
    lake.set(orders=[order(1, "a")], people=[])
    meeting = Meeting(monkeypatch)
    with closing(lake.keep(*OWN)) as kept:
        found = kept.entries(lake.row())

    assert len(meeting.threads) == 2
    assert [rows_of(entry) for entry in found] == [[("a", 1, 1 + n)] for n in range(4)]


def test_all_rows_are_right_at_every_cut(lake: SmallLake) -> None:
    lake.lanes = 2
    lake.set(people=[])
    total = read("SELECT sum(n) AS n FROM marts.by_1", "total")
    with closing(lake.keep(*OWN, total)) as kept:
        for first in (0, 2, 4, 5):
            orders = [order(number, f"w{number % 3}") for number in range(first, first + 7)]
            lake.set(orders=orders)
            *found, last = kept.entries(lake.row())
            assert [rows_of(entry) for entry in found] == [by_hand(orders, n) for n in range(4)]
            assert rows_of(last) == [(7,)]


def by_hand(orders: Sequence[dict[str, Any]], more: int) -> list[tuple[Any, ...]]:
    of = {one["who"]: [o["id"] for o in orders if o["who"] == one["who"]] for one in orders}
    return sorted((who, len(ids), sum(ids) + more) for who, ids in of.items())


def test_a_table_of_another_lane_is_finished_when_the_store_does_not_answer(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.lanes = 2
    lake.set(orders=[order(1, "a")], people=[])

    def silent(_: TableSteps, definition: Definition, *__: object) -> None:
        if definition.table.name == "by_1":
            raise StoreError("the store does not answer")

    monkeypatch.setattr(TableSteps, "step", before(TableSteps.step, silent))
    with closing(lake.keep(*OWN[:2])) as kept:
        with pytest.raises(StoreError, match="does not answer"):
            kept.entries(lake.row())
        monkeypatch.undo()
        found = kept.entries(lake.row())

    assert [entry.version for entry in found] == [0, 0]


def test_one_lane_has_all_memory_when_a_share_is_too_small(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.lanes = 2
    shares: list[int] = []
    lake.set(orders=[order(1, "a")], people=[])
    noted = before(ResidentTables, lambda memory_mb, *_: shares.append(memory_mb))
    monkeypatch.setattr("cdc.derive.keep.table_steps.ResidentTables", noted)
    with closing(lake.keep(*OWN)) as kept:
        kept.entries(lake.row())
        lake.set(orders=[order(1, "a"), order(2, "b")])
        monkeypatch.setattr(ResidentTables, "_has_too_much", lambda *_: True)
        kept.entries(lake.row())
        lake.set(orders=[order(2, "b")])
        meeting = Meeting(monkeypatch, parties=1)
        found = kept.entries(lake.row())

    assert shares == [128, 128, 256]
    assert len(meeting.threads) == 1
    assert [rows_of(entry) for entry in found] == [[("b", 1, 2 + n)] for n in range(4)]


class NoSteps:
    """Stands for what takes the steps of a lane; takes none."""

    is_short = False

    def begin(self, recent: object) -> None: ...
    def close(self) -> None: ...


def test_lanes_in_turn_have_one_thread() -> None:
    """Where tables lag: the other cores are for the captured tables."""
    found: list[tuple[int, str]] = []

    def bring(definition: Definition) -> Steps[None]:
        found.append((threading.get_ident(), definition.table.name))
        yield from ()

    lanes = Lanes([table(name) for name in "abcd"], 2, lambda *_: NoSteps())  # type: ignore[arg-type]
    with closing(lanes):
        lanes.run(bring, None, in_turn=True)

    here = threading.get_ident()
    assert found == [(here, "a"), (here, "c"), (here, "b"), (here, "d")]


def test_one_whole_query_is_calculated_at_a_time(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.lanes = 2
    lake.set(orders=[order(1, "a")], people=[])
    shared, held = Shared(), list[bool]()
    noted = before(load_whole, lambda *_: held.append(shared.alone.locked()))
    monkeypatch.setattr("cdc.derive.keep.lanes.Shared", lambda: shared)
    monkeypatch.setattr("cdc.derive.step.step.load_whole", noted)
    with closing(lake.keep(*OWN)) as kept:
        kept.entries(lake.row())

    assert held == [True] * 4
