"""Random definitions over orders, customers and visits, and random changes of these."""

from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa
from hypothesis import strategies as st

from cdc.tables import TableId

ORDERS, CUSTOMERS, VISITS = (TableId("shop", name) for name in ("orders", "customers", "visits"))
SCHEMAS: Final = {
    ORDERS: pa.schema(
        [
            ("id", pa.int64()),
            ("customer_id", pa.int64()),
            ("k", pa.int32()),
            ("amount", pa.decimal128(10, 2)),
            ("ts", pa.timestamp("us")),
        ]
    ),
    CUSTOMERS: pa.schema(
        [("id", pa.int64()), ("country", pa.string()), ("k", pa.int32()), ("rate", pa.float64())]
    ),
    VISITS: pa.schema(
        [("id", pa.int64()), ("customer_id", pa.int32()), ("ts", pa.timestamp("us"))]
    ),
}
World = dict[TableId, list[dict[str, Any]]]
"""The rows of each table."""

_JOINS: Final = (
    "shop.orders AS o",
    "shop.orders AS o JOIN shop.customers AS c ON c.id = o.customer_id",
    "shop.orders AS o LEFT JOIN shop.customers AS c ON c.id = o.customer_id",
    "shop.orders AS o LEFT JOIN shop.customers AS c ON c.id = o.customer_id AND c.k > o.k",
    "shop.orders AS o RIGHT JOIN shop.customers AS c ON c.id = o.customer_id",
    "shop.orders AS o FULL JOIN shop.customers AS c ON c.id = o.customer_id AND c.k <> o.k",
    "shop.customers AS c LEFT JOIN shop.orders AS o ON o.customer_id = c.id AND o.k = c.k",
    (
        "tumble(shop.orders, ts, INTERVAL '1 hour') AS o JOIN shop.customers AS c"
        " ON o.customer_id = c.id"
    ),
)
_THIRD: Final = (
    "",
    " LEFT JOIN shop.visits AS v ON v.customer_id = o.customer_id",
    " JOIN shop.visits AS v ON v.customer_id = o.customer_id AND v.ts >= o.ts",
    (
        " LEFT JOIN shop.visits AS v ON v.customer_id = o.customer_id AND v.ts BETWEEN o.ts AND"
        " o.ts + INTERVAL '2 hours'"
    ),
    " FULL JOIN shop.orders AS v ON v.k = o.k AND v.id <> o.id",
    (
        " LEFT JOIN sessions(shop.visits, ts, INTERVAL '90 minutes', customer_id) AS v"
        " ON v.customer_id = o.customer_id"
    ),
)
_CONDITIONS: Final = (
    "",
    "o.k IS DISTINCT FROM 1",
    "EXISTS (SELECT 1 FROM shop.visits AS x WHERE x.customer_id = o.customer_id AND x.ts > o.ts)",
    "NOT EXISTS (SELECT 1 FROM shop.visits AS x WHERE x.customer_id = o.customer_id)",
    "o.k IN (SELECT k FROM shop.customers) AND o.amount > 1",
)
_OF_ORDERS: Final = ("o.k", "o.customer_id", "date_trunc('hour', o.ts)", "o.amount > 2")
_OF_CUSTOMERS: Final = (
    "c.country",
    "c.k",
    "c.rate",
    'upper(c.country COLLATE "C")',
    "split_part(c.country, 'e', 1)",
)
_AGGREGATES: Final = "count(*) AS n, sum(o.amount) AS total, min(o.id) AS first_id"


_WHOLE: Final = (
    "SELECT count(*) AS n, sum(o.amount) AS total, max(o.ts) AS latest FROM shop.orders AS o",
    "SELECT o.id AS oid, rank() OVER (ORDER BY o.amount DESC) AS place FROM shop.orders AS o",
    "SELECT o.id AS oid, c.id AS cid FROM shop.orders AS o JOIN shop.customers AS c ON c.k > o.k",
    (
        "SELECT o.id AS oid, lpad(c.country, 3, '-') AS g FROM shop.orders AS o"
        " CROSS JOIN shop.customers AS c"
    ),
    "SELECT o.id AS oid FROM shop.orders AS o WHERE o.k NOT IN (SELECT k FROM shop.customers)",
    (
        "SELECT o.id AS oid, (SELECT max(c.k) FROM shop.customers AS c) AS most"
        " FROM shop.orders AS o"
    ),
    "SELECT count(*) AS n, min(o.ts) AS first FROM shop.orders AS o GROUP BY o.customer_id",
)


def whole_queries() -> st.SearchStrategy[str]:
    """Give the text of a definition that has no scope key."""
    return st.sampled_from(_WHOLE)


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Give the text of a definition."""
    join, third = draw(st.sampled_from(_JOINS)), draw(st.sampled_from(_THIRD))
    where = draw(st.sampled_from(_CONDITIONS))
    source = f"{join}{third}{f' WHERE {where}' if where else ''}"
    possible = _OF_ORDERS + (_OF_CUSTOMERS if " AS c" in join else ())
    chosen = draw(st.lists(st.sampled_from(possible), min_size=1, max_size=3, unique=True))
    listed = ", ".join(f"{one} AS g{number}" for number, one in enumerate(chosen))
    form = draw(st.sampled_from(["plain", "distinct", "groups", "having", "top", "union", "over"]))
    match form:
        case "plain" | "distinct":
            return f"SELECT {'DISTINCT ' * (form == 'distinct')}{listed}, o.id AS oid FROM {source}"
        case "groups" | "having":
            having = " HAVING count(*) > 1" * (form == "having")
            groups = ", ".join(chosen)
            return f"SELECT {listed}, {_AGGREGATES} FROM {source} GROUP BY {groups}{having}"
        case "union":
            kind = draw(st.sampled_from(["UNION", "UNION ALL", "EXCEPT ALL", "INTERSECT"]))
            return (
                f"SELECT {chosen[0]} AS g FROM {source} {kind} SELECT {chosen[0]} AS g FROM {join}"
            )
        case "over":
            over = f"OVER (PARTITION BY {', '.join(chosen)})"
            return f"SELECT {listed}, o.id AS oid, count(*) {over} AS n FROM {source}"
    window = f"PARTITION BY {', '.join(chosen)} ORDER BY o.amount DESC, o.id"
    inner = f"SELECT {listed}, o.amount AS a, rank() OVER ({window}) AS place FROM {source}"
    names = ", ".join(f"t.g{number}" for number in range(len(chosen)))
    return f"SELECT {names}, t.a FROM ({inner}) AS t WHERE t.place = 1"


_SINGLE: Final = (
    "shop.orders AS o",
    "tumble(shop.orders, ts, INTERVAL '1 hour') AS o",
    "hop(shop.orders, ts, INTERVAL '30 minutes', INTERVAL '90 minutes') AS o",
    "(SELECT k, customer_id, amount, ts, id FROM shop.orders WHERE k > 0 OR ts IS NULL) AS o",
)


@st.composite
def row_queries(draw: st.DrawFn) -> str:
    """Give the text of a definition in which each row is made of one order."""
    source, where = draw(st.sampled_from(_SINGLE)), draw(st.sampled_from(_CONDITIONS[:2]))
    possible = ["o.k", "o.customer_id", "o.amount"]
    if not source.startswith("(SELECT"):  # what is made of a subquery's columns is no scope key
        possible += ["o.amount > 2", "-o.k", "date_trunc('hour', o.ts)"]
    if "INTERVAL" in source:
        possible.append("o.window_start")
    chosen = draw(st.lists(st.sampled_from(possible), min_size=1, max_size=3, unique=True))
    listed = ", ".join(f"{one} AS g{number}" for number, one in enumerate(chosen))
    return f"SELECT {listed} FROM {source}{f' WHERE {where}' if where else ''}"


def _maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


_SMALL: Final = st.integers(0, 3)
_TIMES: Final = st.integers(0, 5).map(lambda n: datetime(2024, 3, 31) + n * timedelta(minutes=45))  # noqa: DTZ001
_VALUES: Final = {
    "customer_id": _maybe(_SMALL),
    "k": _maybe(_SMALL),
    "amount": _maybe(st.sampled_from([1, 2, 3])),
    "ts": _maybe(_TIMES),
    "country": _maybe(st.sampled_from(["DE", "de", "é"])),
    "rate": _maybe(st.sampled_from([0.0, -0.0, 1.5, float("nan")])),
}


def rows(table: TableId) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Give the rows of a table; customers have few ids, so that joins find them."""
    others = {name: _VALUES[name] for name in SCHEMAS[table].names if name != "id"}
    row = st.fixed_dictionaries({"id": st.integers(0, 6), **others})
    return st.lists(row, max_size=6, unique_by=lambda one: one["id"])


@st.composite
def worlds(draw: st.DrawFn, most: int) -> list[World]:
    """Give the world at some cuts; of each table, rows stay, go, come and change from one on."""
    world = {table: draw(rows(table)) for table in SCHEMAS}
    found = [world]
    for _ in range(draw(st.integers(1, most))):
        world = {table: draw(_next(table, world[table])) for table in SCHEMAS}
        found.append(world)
    return found


@st.composite
def _next(draw: st.DrawFn, table: TableId, before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if draw(st.integers(0, 2)) == 0:
        return before
    new = {row["id"]: row for row in draw(rows(table))}
    kept = [row for row in before if row["id"] in new or draw(st.booleans())]
    changed = [new.pop(row["id"], row) for row in kept]
    return changed + list(new.values())
