"""Tables over the same inputs share what is kept of these, each with the columns that it needs."""

from contextlib import closing
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from cdc.derive.step import step
from cdc.state.derived_requests import rebuilds
from cdc.tables import TableId
from tests.unit.derive.events import read
from tests.unit.derive.orders import BIG, ORDERS, order
from tests.unit.derive.small_lake import SmallLake, modes, rows_of, type_of

OTHERS = [
    read(f"SELECT t.{column} FROM shop.{table} AS t", f"only_{column}")
    for table, column in (
        ("orders", "amount"),
        ("orders", "who"),
        ("people", "country"),
        ("people", "name"),
    )
]
BY_COUNTRY = read(
    "SELECT p.country, count(*) AS n, sum(o.amount) AS total FROM shop.orders AS o "
    "JOIN shop.people AS p ON p.name = o.who GROUP BY p.country",
    "by_country",
)


def person(name: str, country: str) -> dict[str, Any]:
    return {"name": name, "country": country}


def test_columns_are_found_by_name_whatever_others_have_read_before(lake: SmallLake) -> None:
    """Both sides of the join change in one cut, and only their old rows lead to the country X."""
    with closing(lake.keep(*OTHERS, BY_COUNTRY)) as kept:
        lake.set(orders=[order(1, "a"), order(2, "b")], people=[person("a", "X"), person("b", "Z")])
        kept.entries(lake.row())
        lake.set(
            orders=[order(1, "a"), order(2, "b"), order(4, "d", "4.00")],
            people=[person("a", "X"), person("b", "Z"), person("d", "D")],
        )
        kept.entries(lake.row())
        lake.set(
            orders=[order(2, "b"), order(4, "d", "4.00")],
            people=[person("a", "Y"), person("b", "Z"), person("d", "D")],
        )
        *_, entry = kept.entries(lake.row())

    assert rows_of(entry) == [("D", 1, Decimal("4.00")), ("Z", 1, Decimal("1.00"))]
    assert modes(entry) == ["whole", "scoped", "scoped"]


def test_a_table_that_needs_fewer_columns_than_another_is_kept_by_its_scope(
    lake: SmallLake,
) -> None:
    wide = read("SELECT o.id, o.who, o.amount FROM shop.orders AS o", "wide")
    people = [person("a", "X"), person("b", "Z")]
    with closing(lake.keep(wide, BY_COUNTRY)) as kept:
        lake.set(orders=[order(1, "a")], people=people)
        kept.entries(lake.row())
        lake.set(orders=[order(1, "a"), order(2, "b")], people=[*people, person("c", "C")])
        _, entry = kept.entries(lake.row())

    assert rows_of(entry) == [("X", 1, Decimal("1.00")), ("Z", 1, Decimal("1.00"))]
    assert modes(entry) == ["whole", "scoped"]


def test_a_table_that_is_calculated_as_a_whole_reads_nothing_that_others_keep(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = read("SELECT o.id, o.who, o.amount FROM shop.orders AS o", "wide")
    total = read("SELECT count(*) AS n, sum(o.amount) AS total FROM shop.orders AS o", "total")
    with closing(lake.keep(wide, total)) as kept:
        lake.set(orders=[order(1, "a")], people=[])
        kept.entries(lake.row())
        lake.set(orders=[order(1, "a"), order(2, "b", "2.50")])
        kept.entries(lake.row())
        monkeypatch.setattr(step, "load_whole", lambda *_: pytest.fail("it reads its inputs"))
        lake.set(orders=[order(2, "b", "2.50"), order(3, "c"), order(4, "d")])
        _, entry = kept.entries(lake.row())

    assert rows_of(entry) == [(3, Decimal("4.50"))]
    assert modes(entry) == ["whole", "whole", "whole"]


def test_a_column_that_gets_wider_makes_the_table_anew(lake: SmallLake) -> None:
    """What others keep of it is wider too, but the table's own column is not."""
    lake.schemas = {**lake.schemas, "orders": ORDERS.set(0, pa.field("id", pa.int32()))}
    wide = read("SELECT o.id FROM shop.orders AS o", "wide")
    last = read("SELECT max(o.id) AS id FROM shop.orders AS o", "last")
    with closing(lake.keep(wide, last)) as kept:
        lake.set(orders=[order(1, "a")], people=[])
        kept.entries(lake.row())
        lake.set(orders=[order(2, "a")])
        kept.entries(lake.row())
        lake.schemas = {**lake.schemas, "orders": ORDERS}
        lake.widen(orders=[order(BIG, "a")])
        _, entry = kept.entries(lake.row())

    assert (rows_of(entry), type_of(entry, "id")) == ([(BIG,)], "long")


def test_a_table_that_is_made_anew_leaves_no_copy_of_before(lake: SmallLake) -> None:
    """Rows that are to be forgotten may be in one, and on the disk where memory was short."""
    wide = read("SELECT o.id, o.who, o.amount FROM shop.orders AS o", "wide")
    with closing(lake.keep(wide)) as kept:
        lake.set(orders=[order(1, "a")], people=[])
        kept.entries(lake.row())
        lake.set(orders=[order(1, "a"), order(2, "b")])
        kept.entries(lake.row())
        copies = kept._lanes.of(wide.table)._resident
        assert copies.has(TableId("shop", "orders"))
        rebuilds(lake.folder).ask(wide.table)
        kept.entries(lake.row())

        assert not copies.has(TableId("shop", "orders"))
