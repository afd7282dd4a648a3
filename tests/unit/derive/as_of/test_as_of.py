"""A row is joined with another table as it was: after the row's transaction, or at a time."""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.events.source import act
from tests.unit.derive.as_of.timeline import Timeline
from tests.unit.derive.log.logged import LoggedSource

Act = Callable[[LoggedSource, LoggedSource], None]
PAST = "LEFT JOIN shop.customers FOR SYSTEM_TIME AS OF"
QUERIES = {
    "marts.by_commit": "SELECT o.id, o.n, c.n AS price FROM shop.orders AS o "
    f"{PAST} o._commit AS c ON c.id = o.n",
    "marts.placed": "SELECT h.id, h.n, CASE WHEN h.id = 45 THEN NULL ELSE TIMESTAMPTZ "
    "'2026-01-02 12:05:43+00' + (h.id % 12) * INTERVAL '2 seconds' END AS at "
    "FROM marts.orders_past AS h WHERE h._to_lsn IS NULL",
    "marts.by_time": f"SELECT p.id, p.at, c.n AS price FROM marts.placed AS p {PAST} p.at AS c "
    "ON c.id = p.n",
    "marts.then": "SELECT c.id, c.n FROM shop.customers FOR SYSTEM_TIME AS OF "
    "TIMESTAMPTZ '2026-01-02 12:05:55+00' AS c",
}


def order(key: int, customer: int) -> Act:
    """Insert or update an order; an update changes another column too."""
    return lambda orders, _: (
        orders.update(key, customer, {"big": orders.offset})
        if key in orders.rows
        else orders.insert(key, customer, 0)
    )


def price(customer: int, n: int, op: str = "c") -> Act:
    return lambda _, customers: (
        customers.update(customer, n, {})
        if customer in customers.rows
        else customers.insert(customer, n, 0, op=op)
    )


def at(key: int) -> datetime | None:
    """Return the time of an order, as the view has it."""
    first = datetime(2026, 1, 2, 12, 5, 43, tzinfo=UTC)
    return None if key == 45 else first + timedelta(seconds=2 * (key % 12))


def wanted(line: Timeline) -> dict[str, list[tuple[Any, ...]]]:
    """Return what the tables have to have, by hand."""
    orders, customers = line.orders, line.customers
    now = orders.known[-1].rows if orders.known else {}

    def price_of(rows: Any, key: int) -> Any:  # noqa: ANN401
        return rows[key]["n"] if key in rows else None

    by_commit = [
        (key, row["n"], price_of(customers.as_of(orders.inserted[key]), row["n"]))
        for key, row in now.items()
    ]
    by_time = [
        (key, at(key), price_of(customers.as_of_time(at(key)), row["n"]))
        for key, row in now.items()
    ]
    then = customers.as_of_time(datetime(2026, 1, 2, 12, 5, 55, tzinfo=UTC))
    return {
        "marts.by_commit": sorted(by_commit, key=repr),
        "marts.by_time": sorted(by_time, key=repr),
        "marts.placed": sorted(((k, r["n"], at(k)) for k, r in now.items()), key=repr),
        "marts.then": sorted(((k, row["n"]) for k, row in then.items()), key=repr),
    }


@pytest.fixture
def line(tmp_path: Path) -> Iterator[Timeline]:
    made = Timeline(tmp_path, QUERIES)
    yield made
    made.close()


def prices(line: Timeline, table: str = "marts.by_commit") -> dict[int, Any]:
    """Return the price of each order, at this cut and when everything is made anew."""
    found = line.cut()
    assert found == wanted(line)
    assert line.cut(anew=True) == found
    return {row[0]: row[-1] for row in found[table]}


@pytest.mark.parametrize("cuts", [1, 4])
def test_an_order_keeps_the_price_of_its_transaction(line: Timeline, cuts: int) -> None:
    """Hazard 22: neither its own update nor one of the price changes what it was joined with."""
    for step in ([price(1, 1)], [order(9, 1)], [price(1, 2)], [order(9, 1)]):
        line.tx(*step)
        if cuts > 1:
            assert line.cut() == wanted(line)

    assert prices(line) == {9: 1}


def test_a_price_of_the_same_transaction_counts(line: Timeline) -> None:
    """Hazard 23: whichever of the two is first in it."""
    line.tx(price(1, 1), price(2, 1))
    line.tx(price(1, 3), order(8, 1), order(9, 2), price(2, 4))

    assert prices(line) == {8: 3, 9: 4}


def test_another_customer_is_looked_up_as_of_the_insert(line: Timeline) -> None:
    line.tx(price(1, 1), price(2, 10))
    line.tx(order(9, 1))
    line.tx(price(2, 20))
    line.tx(order(9, 2))

    assert prices(line) == {9: 10}


def test_what_was_deleted_or_not_there_yet_has_no_price(line: Timeline) -> None:
    line.tx(order(7, 1))
    line.tx(price(1, 1))
    line.tx(order(8, 1))
    line.tx(lambda _, customers: customers.delete(1))
    line.tx(order(9, 1))
    line.tx(price(1, 5))

    assert prices(line) == {7: None, 8: 1, 9: None}


def test_an_order_that_comes_again_has_a_new_transaction(line: Timeline) -> None:
    """One of another transaction; deleted and inserted in one it goes on."""
    line.tx(price(1, 1), order(8, 1), order(9, 1))
    line.tx(price(1, 2))
    line.tx(lambda orders, _: orders.delete(8))
    line.tx(order(8, 1), lambda orders, _: orders.delete(9), order(9, 1))

    assert prices(line) == {8: 2, 9: 1}


def test_a_changed_key_is_a_new_row(line: Timeline) -> None:
    """Hazard 47: and a customer of another key is another customer."""
    line.tx(price(1, 1), order(8, 1), order(9, 2))
    line.tx(price(1, 2))
    line.tx(lambda orders, _: orders.rekey(8, 7, {}), lambda _, c: c.rekey(1, 2, {}))

    assert prices(line) == {7: None, 9: None}


def test_a_truncate_ends_all(line: Timeline) -> None:
    """Hazard 41: of the orders, and of the prices of what comes after it."""
    line.tx(price(1, 1), order(8, 1))
    line.tx(lambda orders, _: orders.truncate(), lambda _, c: c.truncate(), order(9, 1))
    line.tx(price(1, 2), order(10, 1))

    assert prices(line) == {9: None, 10: 2}


def test_the_rows_of_a_snapshot_are_joined_with_each_other(line: Timeline) -> None:
    line.snapshot(price(1, 1, "r"), lambda orders, _: orders.insert(8, 1, 0, op="r"))
    line.tx(price(1, 2))
    line.tx(order(9, 1))

    assert prices(line) == {8: 1, 9: 2}


def test_a_reading_changes_the_orders_after_it(line: Timeline) -> None:
    """Hazard 24: and of those before it none, as no event says when the price changed."""
    line.tx(price(1, 1), order(8, 1))
    line.cut()
    line.customers.source.rows[1] = {**line.customers.source.rows[1], "n": 5}
    line.customers.read()
    line.tx(order(9, 1))

    assert prices(line) == {8: 1, 9: 5}


def test_a_reading_of_the_orders_does_not_insert_them_again(line: Timeline) -> None:
    """Hazard 39: an order that it finds without an event has its LSN."""
    line.tx(price(1, 1), price(2, 1), order(8, 1))
    line.tx(price(1, 2), price(2, 2))
    line.cut()
    rows = line.orders.source.rows
    rows[8] = {**rows[8], "n": 2}
    rows[9] = {**rows[8], "id": 9}
    line.orders.read()
    line.tx(price(2, 3))

    assert prices(line) == {8: 1, 9: 2}


def test_a_new_epoch_changes_no_price(line: Timeline) -> None:
    """Its LSNs are smaller, and orders that it finds may have been read before the customers."""
    line.tx(price(1, 1), price(2, 1))
    line.tx(order(8, 1))
    line.tx(lambda orders, _: orders.insert(7, 2, 0))
    line.tx(price(1, 2))
    line.tx(order(9, 2))
    line.cut()
    line.orders.source.rows[10] = {**line.orders.source.rows[8], "id": 10}
    customers = line.customers.source.rows
    customers[1] = {**customers[1], "n": 3}
    line.new_epoch()
    line.tx(price(2, 9))
    line.tx(order(11, 2))

    found = line.cut()

    assert found == wanted(line)
    assert {row[0]: row[2] for row in found["marts.by_commit"]} == {7: 1, 8: 1, 9: 1, 10: 3, 11: 9}


@pytest.mark.parametrize("is_copied", [True, False])
def test_what_a_history_begins_with_reaches_back(line: Timeline, is_copied: bool) -> None:
    """Of tables that are copied first, the orders may be read before the customers."""
    line.tx(order(8, 1))
    for table in (line.orders, line.customers) if is_copied else ():
        line.tx(price(1, 1), price(2, 1))
        table.known.clear()
        table.read(is_first=True)
        line.tx()
    line.tx(price(1, 2), order(9, 1))

    assert prices(line) == ({8: 1, 9: 2} if is_copied else {8: None, 9: 2})


def test_at_a_time_the_clock_never_goes_back(line: Timeline) -> None:
    """Hazard 44: two commits have one time, and one an earlier time than the one before."""
    line.tx(price(1, 0))
    line.tx(*(order(key, 1) for key in range(40, 52)))
    for n in range(1, 16):
        line.tx(price(1, n))
        if n % 4 == 0:
            assert line.cut() == wanted(line)

    times = [one.time for one in line.customers.known if one.time is not None]
    assert sorted(times) != times
    assert len(set(times)) < len(times)
    assert len(set(prices(line, "marts.by_time").values())) > 5


def test_at_a_time_a_reading_follows_the_last_commit(line: Timeline) -> None:
    """Hazard 24; and a row without a time has no price, not the oldest."""
    line.cut()
    line.snapshot(price(1, 1, "r"), price(2, 7, "r"))
    line.tx(*(order(key, 1) for key in (40, 41, 48)), order(45, 2), order(46, 2))
    line.tx(price(1, 2))
    line.customers.source.rows[1] = {**line.customers.source.rows[1], "n": 5}
    line.customers.read()

    assert prices(line, "marts.by_time") == {40: 5, 41: 5, 45: None, 46: 7, 48: 1}


def test_at_a_time_readings_before_all_commits_are_what_was(line: Timeline) -> None:
    line.cut()
    line.snapshot(price(1, 1, "r"))
    line.tx(order(48, 1))
    line.cut()
    line.customers.source.rows[1] = {**line.customers.source.rows[1], "n": 5}
    line.customers.read()

    assert prices(line, "marts.by_time") == {48: 5}


def happen(line: Timeline, random: Random) -> None:
    """Let something happen in the source."""
    if random.random() < 0.1:
        line.customers.read()
    line.tx(*(_random(random) for _ in range(random.randint(1, 4))))


def begin(line: Timeline, random: Random) -> None:
    line.cut()  # a history that begins later begins with a reading
    if random.random() < 0.5:
        line.snapshot(*(price(key, key, "r") for key in range(4)))
    line.tx(price(0, 0), order(40, 0))  # no more rows of a snapshot come


@pytest.mark.parametrize("cuts", [1, 7, 30])
def test_at_every_cut_it_is_what_counting_by_hand_gives(line: Timeline, cuts: int) -> None:
    """However many cuts there are, and when everything is made anew."""
    random = Random(1)
    begin(line, random)
    for number in range(30):
        happen(line, random)
        if (number + 1) % (30 // cuts) == 0:
            assert line.cut() == wanted(line)

    found = line.cut()

    assert line.cut(anew=True) == found == wanted(line)


@settings(max_examples=4, deadline=None)
@given(random=st.randoms(use_true_random=False), steps=st.integers(1, 10))
def test_whatever_happens_and_wherever_cuts_are(
    tmp_path_factory: pytest.TempPathFactory, random: Random, steps: int
) -> None:
    with closing(Timeline(tmp_path_factory.mktemp("line"), QUERIES)) as line:
        begin(line, random)
        for _ in range(steps):
            happen(line, random)
            if random.random() < 0.3:
                assert line.cut() == wanted(line)
            if random.random() < 0.2:
                line.restart()
        found = line.cut()
        assert line.cut(anew=True) == found == wanted(line)


def _random(random: Random) -> Act:
    if random.random() < 0.5:
        return lambda _, customers: act(customers, random, range(4))
    if random.random() < 0.03:
        return lambda orders, _: orders.truncate()
    return lambda orders, _: act(orders, random, range(40, 52))
