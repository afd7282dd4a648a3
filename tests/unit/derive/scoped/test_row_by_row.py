"""Where each row is made of one row of a table, only the changed rows of that are calculated."""

from contextlib import closing

import pytest

from cdc.derive.scope.scope import Scope
from cdc.errors import CdcError
from tests.unit.derive.events import read
from tests.unit.derive.orders import one, order
from tests.unit.derive.scoped.kept_rows import KeptRows, defined, scope_in_shop
from tests.unit.derive.scoped.test_scoped_cases import customer, world
from tests.unit.derive.small_lake import SmallLake, modes, rows_of

KEYED = read("/* ---\nkey: [who]\n--- */\nSELECT o.who, o.id FROM shop.orders AS o")
COUNTRIES = "SELECT c.country AS g FROM shop.customers AS c"


def kept_countries(*countries: str | None) -> KeptRows:
    definition = defined(COUNTRIES)
    kept = KeptRows(definition, scope_in_shop(definition))
    kept.build(world(*(customer(n, country) for n, country in enumerate(countries))))
    return kept


@pytest.mark.parametrize(
    "query",
    [
        "SELECT DISTINCT o.k FROM shop.orders AS o",
        "SELECT o.k, count(*) AS n FROM shop.orders AS o GROUP BY o.k",
        "SELECT o.k FROM shop.orders AS o GROUP BY o.k",
        "SELECT o.k, rank() OVER (PARTITION BY o.k ORDER BY o.id) AS r FROM shop.orders AS o",
        "SELECT t.k FROM (SELECT DISTINCT o.k FROM shop.orders AS o) AS t",
        "SELECT o.k FROM shop.orders AS o UNION ALL SELECT o.k FROM shop.orders AS o",
        "SELECT o.k FROM shop.orders AS o JOIN shop.customers AS c ON c.id = o.customer_id",
        "SELECT o.k FROM shop.orders AS o WHERE o.k IN (SELECT k FROM shop.customers)",
        "SELECT v.id FROM sessions(shop.visits, ts, INTERVAL '1 hour', customer_id) AS v",
    ],
)
def test_rows_that_meet_are_not_calculated_one_by_one(query: str) -> None:
    scope = scope_in_shop(defined(query))

    assert isinstance(scope, Scope)
    assert not scope.by_row


def test_the_highest_copies_of_equal_rows_go() -> None:
    kept = kept_countries("DE", "DE", "DE", "FR", None)
    kept.step(world(customer(2, "DE"), customer(5, None), customer(6, None)))

    assert sorted((row["g"] or "", copy) for (_, copy), row in kept.stored.items()) == [
        ("", 1),
        ("", 2),
        ("DE", 1),
    ]


def test_a_row_that_takes_the_place_of_an_equal_one_changes_nothing() -> None:
    kept = kept_countries("DE", "FR")

    assert kept.step(world(customer(7, "FR"), customer(8, "DE"))) == 0


def test_rows_that_are_to_go_and_are_not_there_are_refused() -> None:
    kept = kept_countries("DE", "FR")
    kept.stored.clear()

    with pytest.raises(CdcError, match="the table lacks 2 rows that are to go"):
        kept.step(world())


def test_two_rows_change_keys(lake: SmallLake) -> None:
    with closing(lake.keep(KEYED)) as kept:
        lake.set(orders=[order(1, "a"), order(2, "b"), order(3, None)], people=[])
        one(kept, lake)
        lake.set(orders=[order(1, "b"), order(2, None), order(3, "a")])
        entry = one(kept, lake)

    assert sorted(rows_of(entry), key=repr) == [("a", 3), ("b", 1), (None, 2)]
    assert modes(entry) == ["whole", "scoped"]


@pytest.mark.parametrize("key", ["a", None])
@pytest.mark.parametrize("count", [1, 2])
def test_a_key_that_a_stored_or_a_new_row_has_is_refused(
    lake: SmallLake, key: str | None, count: int
) -> None:
    with closing(lake.keep(KEYED)) as kept:
        lake.set(orders=[order(1, "a"), order(2, None), order(3, "c")], people=[])
        first = one(kept, lake)
        gone = {"a": 1, None: 2}[key]
        there = [order(1, "a"), order(2, None), order(3, "c")]
        if count == 2:  # both are new
            there = [row for row in there if row["id"] != gone]
        lake.set(orders=[*there, *(order(10 + n, key) for n in range(count))])
        stopped = one(kept, lake)
        lake.set(orders=[*there, order(20, "d")])
        again = one(kept, lake)

    assert stopped.state == "stopped"
    assert "its key (who) is not unique: 2 rows have the same" in stopped.reason
    assert stopped.version == first.version
    assert len(rows_of(again)) == len(there) + 1
