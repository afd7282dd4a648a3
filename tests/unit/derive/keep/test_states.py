"""A derived table says which cut it is at, and why it goes no further."""

from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import closing
from threading import Event
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from structlog.testing import capture_logs

from cdc.derive.definition.folder import read_definition
from cdc.derive.keep import derived_tables
from cdc.derive.keep.table_steps import TableSteps
from cdc.errors import CdcError, ErrorKind
from cdc.state.derived_requests import pauses, rebuilds
from cdc.tables import TableId
from cdc.waiting import until
from tests.unit.derive.events import read
from tests.unit.derive.orders import BIG, BY_WHO, ORDERS, one, order
from tests.unit.derive.small_lake import PATIENT, SmallLake, defined, rows_of, type_of


def test_a_changed_definition_replaces_the_rows_in_one_commit(lake: SmallLake) -> None:
    """Hazard 43."""
    lake.set(orders=[order(1, "a")], people=[])
    with closing(lake.keep(BY_WHO)) as kept:
        before = one(kept, lake)
    other = defined("by_who", 'SELECT id + 1 AS next FROM "shop"."orders"', "shop.orders")
    with closing(lake.keep(other, last=[before])) as kept:
        after = one(kept, lake)

    assert after.version == before.version + 1
    assert rows_of(after) == [(2,)]
    assert [row[0] for row in rows_of(before)] == ["a"]  # a reader at the older cut


def test_a_table_that_fails_stops_alone_and_goes_on_when_its_inputs_change(lake: SmallLake) -> None:
    """Hazard 32: an overflow; the last good version stays."""
    more = defined("more", 'SELECT id + 1 AS next FROM "shop"."orders"', "shop.orders")
    with closing(lake.keep(more, BY_WHO)) as kept:
        lake.set(orders=[order(1, "a")], people=[])
        good, _ = kept.entries(lake.row())
        lake.set(orders=[order(BIG, "a")])
        failed, other = kept.entries(lake.row())
        again, _ = kept.entries(lake.row())
        lake.set(orders=[order(2, "a")])
        mended, _ = kept.entries(lake.row())

    assert failed.state == again.state == "stopped"
    assert failed.reason == (
        "its query failed: a number is out of the range of its type; "
        "remedy: correct the row or the definition; the table goes on when its inputs change"
    )
    assert (failed.version, failed.at_cut) == (good.version, good.at_cut)
    assert other.state == "streaming"
    assert (mended.state, rows_of(mended)) == ("streaming", [(3,)])


@pytest.mark.parametrize("error", [KeyError("x"), CdcError(ErrorKind.CONFLICT, "in vain")])
def test_a_table_that_fails_at_every_cut_is_reported_once(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*_: object, **__: object) -> NoReturn:
        raise error

    monkeypatch.setattr(TableSteps, "step", fails)
    with closing(lake.keep(BY_WHO)) as kept, capture_logs() as logs:
        for number in range(3):
            lake.set(orders=[order(number, "a")], people=[])
            (entry,) = kept.entries(lake.row())

    assert entry.state == "stopped"
    assert [log["event"] for log in logs].count("derived table stops") == 1


def test_rows_with_one_key_stop_the_table(lake: SmallLake) -> None:
    """Hazard 54."""
    wrong = defined("wrong", 'SELECT who, id FROM "shop"."orders"', "shop.orders", key=("who",))
    lake.set(orders=[order(1, "a"), order(2, "a")], people=[])
    with closing(lake.keep(wrong)) as kept:
        entry = one(kept, lake)

    assert (entry.state, entry.version) == ("stopped", -1)
    assert entry.reason == (
        "its key (who) is not unique: 2 rows have the same; "
        "remedy: name the columns in key that tell its rows apart"
    )


def test_what_is_large_is_refused_unless_the_definition_allows_it(lake: SmallLake) -> None:
    counted = "SELECT count(*) AS n FROM shop.orders"
    total, full = read(counted, "total"), read(f"/* ---\nrefresh: full\n--- */\n{counted}", "full")
    groups = read("SELECT who, count(*) AS n FROM shop.orders GROUP BY who", "groups")
    lake.set(orders=[order(number, "a") for number in range(11)], people=[])
    with closing(lake.keep(total, full, groups, full_rows=10)) as kept:
        refused, *allowed = kept.entries(lake.row())

    assert refused.reason == (
        "its inputs have 11 rows, and it can only be calculated as a whole: "
        "it aggregates all rows: it has no GROUP BY; "
        "remedy: set refresh: full in the definition, or raise derived.full_rows"
    )
    assert [entry.state for entry in allowed] == ["streaming", "streaming"]


@pytest.mark.parametrize("state", ["stopped", "degraded"])
def test_a_table_inherits_the_flags_of_its_inputs(lake: SmallLake, state: str) -> None:
    """Hazard 52."""
    people = defined("people", 'SELECT name FROM "shop"."people"', "shop.people")
    lake.set(orders=[order(1, "a")], people=[])
    lake.states["orders"] = state
    with closing(lake.keep(BY_WHO, people)) as kept:
        flagged, free = kept.entries(lake.row())

    assert (flagged.state, flagged.reason) == (
        "degraded",
        f"its input shop.orders is {state}: a reason",
    )
    assert free.state == "streaming"


def test_a_table_waits_for_rows_of_its_inputs(lake: SmallLake) -> None:
    lake.set(orders=[order(1, "a")])
    people = defined("people", 'SELECT name FROM "shop"."people"', "shop.people")
    with closing(lake.keep(people)) as kept:
        waiting = one(kept, lake)
        lake.set(people=[])
        built = one(kept, lake)

    assert (waiting.state, waiting.version) == ("building", -1)
    assert waiting.reason == "its input shop.people has no rows yet"
    assert (built.state, rows_of(built)) == ("streaming", [])


def test_a_cut_does_not_wait_longer_than_it_may(lake: SmallLake) -> None:
    """What is not there in time is published at the cut where it is, and catches up."""
    lake.set(orders=[order(1, "a")], people=[])
    with closing(lake.keep(BY_WHO)) as kept:
        first = one(kept, lake)
    with closing(lake.keep(BY_WHO, last=[first], seconds=0.0)) as hurried:
        lake.set(orders=[order(1, "b")])
        late = one(hurried, lake)
    with closing(lake.keep(BY_WHO, last=[late])) as kept:
        caught_up = one(kept, lake)

    assert (late.state, late.at_cut, late.version) == ("lagging", 1, first.version)
    assert late.reason == "it is at cut 1"
    assert rows_of(late) == rows_of(first)
    assert (caught_up.state, caught_up.at_cut) == ("streaming", 3)
    assert [row[0] for row in rows_of(caught_up)] == ["b"]


def test_no_cut_waits_for_tables_that_take_longer_than_it_may(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one has, as long as it may; the table catches up all the same."""
    lake.set(orders=[order(1, "a")], people=[])
    waits: list[float] = []
    monkeypatch.setattr(derived_tables, "wait", lambda _, seconds: waits.append(seconds))
    held = Held()
    with closing(lake.keep(BY_WHO, seconds=0.0, pauses=held)) as kept:
        assert one(kept, lake).state == "building"  # it begins
        assert one(kept, lake).state == "building"  # it is not done
        held.over.set()
        until(lambda: one(kept, lake).at_cut > 0, PATIENT, "it does not catch up")

    assert waits == [0.0]


class Clock:
    """Stands for the module ``time``; a step takes longer than any cut waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        step = TableSteps.step
        monkeypatch.setattr(derived_tables, "time", self)
        monkeypatch.setattr(TableSteps, "step", lambda *given, **more: self.late(step, given, more))

    def late(
        self, step: Callable[..., object], given: tuple[Any, ...], more: dict[str, Any]
    ) -> object:
        self.now += 2 * PATIENT
        return step(*given, **more)

    def monotonic(self) -> float:
        return self.now


def test_a_cut_without_changes_does_not_let_the_next_one_wait(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.set(orders=[order(1, "a")], people=[])
    waits: list[float] = []

    def waited(work: list[Future[None]], seconds: float) -> None:
        waits.append(seconds)
        wait(work, seconds)

    monkeypatch.setattr(derived_tables, "wait", waited)
    Clock(monkeypatch)
    with closing(lake.keep(BY_WHO)) as kept:
        one(kept, lake)
        until(lambda: one(kept, lake).at_cut > 1, PATIENT, "it does not catch up")  # unchanged
        lake.set(orders=[order(1, "b")])
        until(lambda: rows_of(one(kept, lake))[0][0] == "b", PATIENT, "it does not catch up")

    assert waits == [PATIENT]


class Rests(Event):
    """Knows how long the thread rested that lags behind."""

    def __init__(self) -> None:
        super().__init__()
        self.rested: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.rested.append(timeout)
        return super().wait(timeout)


def test_tables_that_lag_leave_time_to_others(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a step behind the cuts the next one has to wait; the end of the job has not."""
    lake.set(orders=[order(1, "a")], people=[])
    Clock(monkeypatch)
    rests, long = Rests(), 3 * PATIENT
    monkeypatch.setattr(derived_tables, "Event", lambda: rests)
    monkeypatch.setattr(derived_tables, "_MOST_REST", long)
    with closing(lake.keep(BY_WHO)) as kept:
        one(kept, lake)
        assert rests.rested == []
        lake.set(orders=[order(1, "b")])
        until(lambda: rows_of(one(kept, lake))[0][0] == "b", PATIENT, "it does not catch up")
        until(lambda: bool(rests.rested), PATIENT, "it does not rest")

    assert rests.rested == [2 * PATIENT]  # as long as the step took


class Held:
    """Knows of no table that is paused, but answers only when the wait is over."""

    def __init__(self) -> None:
        self.over = Event()

    def is_asked(self, table: TableId) -> bool:
        assert self.over.wait(PATIENT), table
        return False

    def done(self, table: TableId) -> None: ...


def test_a_commit_that_no_cut_names_is_not_shown(lake: SmallLake) -> None:
    """Hazard 50: the job died between the table's commit and the cut, and the cut is another."""
    lake.set(orders=[order(1, "a")], people=[])
    with closing(lake.keep(BY_WHO)) as kept:
        published = one(kept, lake)
        lake.set(orders=[order(2, "unpublished")])
        lost = one(kept, lake)
    lake.set(orders=[order(3, "c")])
    with closing(lake.keep(BY_WHO, last=[published], seconds=0.0)) as hurried:
        lagging = one(hurried, lake)
    with closing(lake.keep(BY_WHO, last=[published])) as restarted:
        entry = one(restarted, lake)

    assert lost.version > published.version
    assert rows_of(lagging) == rows_of(published)
    assert [row[0] for row in rows_of(entry)] == ["c"]


def test_somebody_else_s_rows_are_replaced(lake: SmallLake) -> None:
    lake.set(orders=[order(1, "a")], people=[])
    with closing(lake.keep(BY_WHO)) as kept:
        first = one(kept, lake)
        DeltaTable(first.path).delete()
        lake.set(orders=[order(1, "b")])
        mended = one(kept, lake)

    assert [row[0] for row in rows_of(mended)] == ["b"]


def test_a_table_is_calculated_anew_when_somebody_asks(lake: SmallLake) -> None:
    """Its digests say that nothing differs, but a value does; no input has changed."""
    lake.set(orders=[order(1, "a")], people=[])
    requests = rebuilds(lake.folder)
    with closing(lake.keep(BY_WHO)) as kept:
        first = one(kept, lake)
        DeltaTable(first.path).update({"n": "7"})
        requests.ask(BY_WHO.table)
        mended = one(kept, lake)
        after = one(kept, lake)

    assert rows_of(mended) == rows_of(first)
    assert not requests.is_asked(BY_WHO.table)
    assert after.version == mended.version > first.version


def test_a_value_of_a_type_that_the_engines_treat_differently_stops_the_table(
    lake: SmallLake,
) -> None:
    """The reason is ours and says what to do; it has no value of a row."""
    text = "SELECT floor(id) AS whole FROM shop.orders"
    floor, problems = read_definition("marts.floor.sql", "marts.floor.sql", text)
    assert floor is not None, problems
    lake.set(orders=[order(1, "a")], people=[])
    with closing(lake.keep(floor)) as kept:
        entry = one(kept, lake)

    assert entry.reason == (
        "its query failed: floor of a value of this type differs from Postgres: "
        "cast the value first; "
        "remedy: correct the row or the definition; the table goes on when its inputs change"
    )


def test_a_table_follows_when_a_column_of_an_input_becomes_wider(lake: SmallLake) -> None:
    """Hazard 42: its rows read alike, but the next one needs the new type."""
    ids = defined("ids", 'SELECT id FROM "shop"."orders"', "shop.orders")
    lake.schemas = {**lake.schemas, "orders": ORDERS.set(0, pa.field("id", pa.int32()))}
    lake.set(orders=[order(1, "a")], people=[])
    with closing(lake.keep(ids)) as kept:
        before = one(kept, lake)
        lake.schemas = {**lake.schemas, "orders": ORDERS}
        lake.widen(orders=[order(1, "a")])
        after = one(kept, lake)
        lake.set(orders=[order(BIG, "a")])
        large = one(kept, lake)

    assert [type_of(entry, "id") for entry in (before, after, large)] == ["integer", "long", "long"]
    assert (rows_of(before), rows_of(after), rows_of(large)) == ([(1,)], [(1,)], [(BIG,)])


def test_a_table_stops_when_a_column_that_it_uses_is_gone(lake: SmallLake) -> None:
    """Hazard 42; a column that it does not use may go."""
    ids = defined("ids", 'SELECT id FROM "shop"."orders"', "shop.orders")
    lake.set(orders=[order(1, "a")], people=[])
    with closing(lake.keep(BY_WHO, ids)) as kept:
        before, _ = kept.entries(lake.row())
        lake.schemas = {**lake.schemas, "orders": ORDERS.remove(2)}
        lake.widen(orders=[{"id": 2, "who": "a"}])
        stopped, other = kept.entries(lake.row())

    assert (stopped.state, stopped.version) == ("stopped", before.version)
    assert 'column "amount" not found' in stopped.reason
    assert (other.state, rows_of(other)) == ("streaming", [(2,)])


def test_a_paused_table_and_those_over_it_stay_at_their_cut(lake: SmallLake) -> None:
    top = defined("top", 'SELECT max(n) AS most FROM "marts"."by_who"', "marts.by_who")
    with closing(lake.keep(BY_WHO, top)) as kept:
        lake.set(orders=[order(1, "a")], people=[])
        first = kept.entries(lake.row())
        pauses(lake.folder).ask(BY_WHO.table)
        lake.set(orders=[order(1, "b")])
        paused = kept.entries(lake.row())
        pauses(lake.folder).done(BY_WHO.table)
        resumed = kept.entries(lake.row())

    assert [(entry.state, entry.at_cut, entry.version) for entry in paused] == [
        ("lagging", 1, entry.version) for entry in first
    ]
    assert [entry.reason for entry in paused] == [
        "it is paused",
        "its input marts.by_who is at cut 1",
    ]
    assert [(entry.state, entry.at_cut) for entry in resumed] == [("streaming", 3)] * 2
    assert [row[0] for row in rows_of(resumed[0])] == ["b"]
