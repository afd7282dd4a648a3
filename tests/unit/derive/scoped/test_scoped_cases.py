"""Single changes whose scope is easily found too small; each is also compared with the whole."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from cdc.derive.scope.scope import Scope
from cdc.derive.step.changes import added_rows, removed_rows
from cdc.tables import TableId
from tests.unit.derive.scoped.grammar import ORDERS, SCHEMAS, World
from tests.unit.derive.scoped.kept_rows import KeptRows, defined, scope_in_shop

MIXED = """SELECT o.k AS a, c.country AS b, count(*) AS n FROM shop.orders AS o
JOIN shop.customers AS c ON c.id = o.customer_id GROUP BY o.k, c.country"""
BY_COUNTRY = """SELECT c.country AS g, count(*) AS n FROM shop.orders AS o
LEFT JOIN shop.customers AS c ON c.id = o.customer_id GROUP BY c.country"""
BOTH = """SELECT o.id AS oid, c.id AS cid FROM shop.orders AS o
FULL JOIN shop.customers AS c ON c.id = o.customer_id"""
ASKED = """SELECT o.id AS oid FROM shop.orders AS o WHERE NOT EXISTS
(SELECT 1 FROM shop.visits AS x WHERE x.customer_id = o.customer_id)"""
SESSIONS = """SELECT v.customer_id AS g, v.window_start AS s, count(*) AS n
FROM sessions(shop.visits, ts, INTERVAL '30 minutes', customer_id) AS v
GROUP BY v.customer_id, v.window_start"""
CHAIN = """SELECT c.rate AS g, count(v.id) AS n FROM shop.visits AS v
LEFT JOIN shop.orders AS o ON o.customer_id = v.customer_id
LEFT JOIN shop.customers AS c ON c.k = o.k GROUP BY c.rate"""
RATES = "SELECT c.country AS g, c.rate AS rate FROM shop.customers AS c"
PEOPLE = "SELECT c.country AS g, count(*) AS n FROM shop.customers AS c GROUP BY c.country"


def order(number: int, customer: int | None = None, k: int | None = None) -> dict[str, Any]:
    return {"id": number, "customer_id": customer, "k": k, "amount": 1, "ts": None}


def customer(
    number: int, country: str | None = "DE", k: int | None = None, rate: float | None = None
) -> dict[str, Any]:
    return {"id": number, "country": country, "k": k, "rate": rate}


def visit(number: int, who: int | None, minutes: int) -> dict[str, Any]:
    time = datetime(2024, 3, 31) + timedelta(minutes=minutes)  # noqa: DTZ001 - a time without zone
    return {"id": number, "customer_id": who, "ts": time}


def world(*rows: dict[str, Any]) -> World:
    """Return a world of these rows, each in the table that has its columns."""
    names = {frozenset(schema.names): table for table, schema in SCHEMAS.items()}
    found: World = {table: [] for table in SCHEMAS}
    for row in rows:
        found[names[frozenset(row)]].append(row)
    return found


@pytest.mark.parametrize(
    ("query", "cuts"),
    [
        pytest.param(
            MIXED,
            [
                world(order(1, 1, 5), order(2, 1, 6), customer(1, "DE")),
                world(order(1, 1, 7), order(2, 1, 6), customer(1, "FR")),
            ],
            id="a group of columns of two tables, both changed",
        ),
        pytest.param(
            MIXED,
            [
                world(order(1, 1, 5), customer(1, "DE"), customer(2, "FR")),
                world(order(1, 2, 5), customer(2, "IT")),
            ],
            id="a row goes to another, which changes too",
        ),
        pytest.param(
            BY_COUNTRY,
            [world(order(1, 1), customer(1, "DE")), world(order(1, 1)), world()],
            id="what was joined is gone",
        ),
        pytest.param(
            BY_COUNTRY,
            [world(order(1, 1)), world(order(1, 1), customer(1, None)), world(customer(1, None))],
            id="NULL of no match and NULL of a match are one group",
        ),
        pytest.param(
            BOTH,
            [
                world(customer(3)),
                world(),
                world(order(3, 3)),
                world(order(3, 3), customer(3)),
                world(customer(3)),
            ],
            id="hazard 4: matched, unmatched, matched",
        ),
        pytest.param(
            BOTH,
            [
                world(order(1, 1), customer(1), customer(1)),
                world(order(1, 1), customer(1)),
                world(order(1, 1)),
            ],
            id="hazard 5: two equal rows on the inner side",
        ),
        pytest.param(
            BOTH,
            [world(), world(order(1, 1), customer(1))],
            id="hazard 6: both sides in one transaction",
        ),
        pytest.param(
            BOTH,
            [world(order(1), customer(1)), world(order(1, 1), customer(1))],
            id="hazard 8: NULL matches nothing",
        ),
        pytest.param(
            ASKED,
            [world(order(1, 1)), world(order(1, 1), visit(1, 1, 0)), world(order(1, 1))],
            id="a condition's table changes",
        ),
        pytest.param(
            SESSIONS,
            [
                world(visit(1, 1, 0), visit(2, 1, 30), visit(3, 1, 60), visit(4, 2, 0)),
                world(visit(1, 1, 0), visit(3, 1, 60), visit(4, 2, 0)),
                world(visit(1, 1, 0), visit(2, 1, 30), visit(3, 1, 60)),
                world(visit(1, None, 0), visit(2, None, 30), visit(3, None, 60)),
                world(visit(1, None, 0), visit(3, None, 60)),
            ],
            id="hazard 16: sessions split and merge",
        ),
        pytest.param(
            CHAIN,
            [
                world(visit(1, 1, 0), visit(2, 2, 0), order(1, 1, 5), customer(1, k=5, rate=1.5)),
                world(visit(1, 1, 0), visit(2, 2, 0), order(1, 2, 5), customer(1, k=5, rate=2.5)),
            ],
            id="a chain of joins changes in the middle and at its end",
        ),
        pytest.param(
            CHAIN,
            [
                world(visit(1, 1, 0), order(1, 1, 5), customer(1, k=5, rate=1.5)),
                world(visit(1, 1, 0), order(1, 1, 5), customer(1, k=5, rate=2.5)),
            ],
            id="a chain of joins changes at its end alone",
        ),
        pytest.param(
            RATES,
            [world(customer(1, rate=0.0)), world(customer(1, rate=-0.0))],
            id="0 becomes -0, which is equal",
        ),
        pytest.param(
            PEOPLE,
            [world(*(customer(n) for n in range(3))), world(customer(7, None)), world()],
            id="hazard 41: TRUNCATE and an insert",
        ),
    ],
)
def test_a_scoped_step_finds_it(query: str, cuts: list[World]) -> None:
    definition = defined(query)
    scope = scope_in_shop(definition)
    assert isinstance(scope, Scope), scope
    kept = KeptRows(definition, scope)
    kept.build(cuts[0])
    for now in cuts[1:]:
        kept.step(now)
        assert kept.rows() == kept.expected()
    anew = KeptRows(definition, scope)
    anew.build(cuts[-1])
    assert anew.stored == kept.stored


def test_a_step_calculates_only_what_the_change_leads_to() -> None:
    definition = defined(PEOPLE)
    scope = scope_in_shop(definition)
    assert isinstance(scope, Scope)
    before = [customer(number, str(number)) for number in range(50)]
    kept = KeptRows(definition, scope)
    kept.build(world(*before))

    assert kept.step(world(*before[1:], customer(60, "7"))) == 2
    assert kept.step(world(*reversed(before[1:]), customer(60, "7"))) == 0


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT count(*) AS n FROM shop.orders", "it aggregates all rows: it has no GROUP BY"),
        (
            "SELECT o.id, rank() OVER (ORDER BY o.amount) AS n FROM shop.orders AS o",
            "a window function has no PARTITION BY",
        ),
        (
            "SELECT count(*) AS n FROM shop.orders AS o GROUP BY o.k",
            "no output column is one of GROUP BY and every PARTITION BY",
        ),
        (
            "SELECT o.id FROM shop.orders AS o CROSS JOIN shop.customers AS c",
            "shop.customers is joined without an equality of columns",
        ),
        (
            "SELECT o.id FROM shop.orders AS o JOIN shop.customers AS c ON c.k > o.k",
            "shop.customers is joined without an equality of columns",
        ),
        (
            (
                "SELECT o.id FROM shop.orders AS o, shop.customers AS c LEFT JOIN shop.visits AS v "
                "ON v.customer_id = c.k WHERE c.id = o.customer_id"
            ),
            "shop.customers is joined without an equality of columns",
        ),
        (
            (
                "SELECT o.id FROM shop.orders AS o LEFT JOIN shop.visits AS v ON v.id = o.id "
                "FULL JOIN shop.customers AS c ON c.id = o.customer_id AND v.id IS NULL"
            ),
            "beside a RIGHT or FULL join, a condition names a third table",
        ),
        (
            "SELECT o.id FROM shop.orders AS o WHERE o.k NOT IN (SELECT k FROM shop.customers)",
            "a condition of WHERE has a subquery that is not EXISTS or IN",
        ),
        (
            (
                "SELECT o.id FROM shop.orders AS o WHERE EXISTS "
                "(SELECT 1 FROM shop.visits AS v WHERE v.id > o.id)"
            ),
            "a condition asks shop.visits without an equality of columns",
        ),
        (
            "SELECT o.id, (SELECT max(c.k) FROM shop.customers AS c) AS m FROM shop.orders AS o",
            "a subquery is a value: derive it as a table, and join it",
        ),
        (
            "SELECT v.id FROM sessions(shop.visits, ts, INTERVAL '1 hour') AS v",
            "its sessions have no key",
        ),
        (
            (
                "WITH t AS (SELECT id FROM shop.orders) SELECT t.id FROM t "
                "JOIN shop.customers AS c ON c.id = t.id"
            ),
            "a subquery in FROM has other tables beside it: derive it as a table",
        ),
    ],
)
def test_what_has_no_scope_says_why(query: str, reason: str) -> None:
    found = scope_in_shop(defined(query))

    assert getattr(found, "reason", found) == reason


def test_refresh_full_asks_for_the_whole() -> None:
    found = scope_in_shop(defined(f"/* ---\nrefresh: full\n--- */\n{PEOPLE}"))

    assert getattr(found, "reason", found) == "its definition says refresh: full"


def test_the_key_is_the_scope_where_it_can_be() -> None:
    keyed = "/* ---\nkey: [id]\n--- */\nSELECT o.id, o.k, o.amount FROM shop.orders AS o"
    scope = scope_in_shop(defined(keyed))

    assert isinstance(scope, Scope)
    assert scope.columns == ("id",)
    assert {one.table for one in scope.branches[0].occurrences} == {ORDERS}


def test_every_partition_bounds_the_scope() -> None:
    over = "count(*) OVER (PARTITION BY o.k, o.ts) AS n, min(o.id) OVER (PARTITION BY o.k) AS m"
    scope = scope_in_shop(defined(f"SELECT o.id, o.ts, o.k, {over} FROM shop.orders AS o"))

    assert isinstance(scope, Scope)
    assert scope.columns == ("k",)


def test_a_table_may_have_a_quote_in_its_name() -> None:
    table = TableId("shop", 'a"b')

    assert removed_rows(table) == '_cdc_scope."removed shop.a""b"'
    assert added_rows(table) == '_cdc_scope."added shop.a""b"'
