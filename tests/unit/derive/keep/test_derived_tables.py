"""A derived table has the rows of its query at every cut."""

from collections import Counter
from contextlib import closing
from decimal import Decimal

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.derive.orders import BIG, BY_WHO, ORDERS, one, order
from tests.unit.derive.small_lake import SmallLake, defined, rows_of


def test_a_group_follows_inserts_updates_and_deletes(lake: SmallLake) -> None:
    """Hazards 1 and 3: the largest value goes, and then the group."""
    with closing(lake.keep(BY_WHO)) as kept:
        lake.set(orders=[order(1, "a"), order(2, "a", "5.00"), order(3, "b")], people=[])
        first = one(kept, lake)
        lake.set(orders=[order(1, "a"), order(3, "b")])
        second = one(kept, lake)
        lake.set(orders=[order(3, "b")])
        third = one(kept, lake)

    assert first.state == second.state == third.state == "streaming"
    one_row = ("b", 1, Decimal("1.00"), Decimal("1.00"))
    assert rows_of(first) == [("a", 2, Decimal("6.00"), Decimal("5.00")), one_row]
    assert rows_of(second) == [("a", 1, Decimal("1.00"), Decimal("1.00")), one_row]
    assert rows_of(third) == [one_row]
    assert [entry.rows for entry in (first, second, third)] == [2, 2, 1]


def test_only_what_differs_is_committed(lake: SmallLake) -> None:
    with closing(lake.keep(BY_WHO)) as kept:
        lake.set(orders=[order(number, f"w{number}") for number in range(50)], people=[])
        one(kept, lake)
        lake.set(orders=[order(number, f"w{number}") for number in range(49)] + [order(1, "new")])
        changed = one(kept, lake)

    metrics = DeltaTable(changed.path).history(1)[0]["operationMetrics"]
    assert (metrics["numOutputRows"], metrics["numTargetRowsDeleted"]) == ("1", "1")


def test_nothing_is_committed_where_nothing_differs(lake: SmallLake) -> None:
    """Hazard 40: an input that was only written anew has another version."""
    with closing(lake.keep(BY_WHO)) as kept:
        lake.set(orders=[order(1, "a")], people=[])
        first = one(kept, lake)
        lake.set(orders=[order(1, "a")])
        second = one(kept, lake)

    assert second.version == first.version
    assert (second.at_cut, second.state) == (2, "streaming")


def test_null_is_one_group_and_equal_rows_are_counted(lake: SmallLake) -> None:
    """Hazards 8 and 54: a key may be NULL; a table without a key has equal rows."""
    twice = defined("twice", 'SELECT who FROM "shop"."orders"', "shop.orders")
    with closing(lake.keep(BY_WHO, twice)) as kept:
        lake.set(orders=[order(1, None), order(2, None), order(3, "")], people=[])
        grouped, copies = kept.entries(lake.row())
        lake.set(orders=[order(1, None), order(3, "")])
        _, fewer = kept.entries(lake.row())

    assert [row[:2] for row in rows_of(grouped)] == [("", 1), (None, 2)]
    assert rows_of(copies) == [("",), (None,), (None,)]
    assert rows_of(fewer) == [("",), (None,)]


def test_a_table_without_groups_has_one_row(lake: SmallLake) -> None:
    """Hazard 2: also after a TRUNCATE."""
    total = defined("total", 'SELECT count(*) n, sum(id) s FROM "shop"."orders"', "shop.orders")
    with closing(lake.keep(total)) as kept:
        lake.set(orders=[order(BIG, "a"), order(BIG, "b")], people=[])
        assert rows_of(one(kept, lake)) == [(2, Decimal(2 * BIG))]
        lake.set(orders=[])
        assert rows_of(one(kept, lake)) == [(0, None)]


def test_both_sides_of_a_join_may_change_in_one_cut(lake: SmallLake) -> None:
    """Hazards 4 to 7."""
    joined = defined(
        "joined",
        'SELECT o.id, p.country FROM "shop"."orders" o FULL JOIN "shop"."people" p ON p.name=o.who',
        "shop.orders",
        "shop.people",
    )
    with closing(lake.keep(joined)) as kept:
        lake.set(orders=[order(1, "a")], people=[{"name": "a", "country": "DE"}])
        assert rows_of(one(kept, lake)) == [(1, "DE")]
        lake.set(orders=[order(1, "b")], people=[{"name": "b", "country": "FR"}] * 2)
        assert rows_of(one(kept, lake)) == [(1, "FR"), (1, "FR")]
        lake.set(people=[])
        assert rows_of(one(kept, lake)) == [(1, None)]


def test_a_table_over_another_moves_in_the_same_cut(lake: SmallLake) -> None:
    """Hazards 37 and 38."""
    top = defined("top", 'SELECT max(n) AS most FROM "marts"."by_who"', "marts.by_who")
    with closing(lake.keep(BY_WHO, top)) as kept:
        for count in (1, 3):
            lake.set(orders=[order(number, "a") for number in range(count)], people=[])
            _, entry = kept.entries(lake.row())
            assert rows_of(entry) == [(count,)]


def test_keys_may_be_swapped_and_a_table_emptied_in_one_transaction(lake: SmallLake) -> None:
    """Hazards 9 and 41."""
    names = defined("names", 'SELECT id, who FROM "shop"."orders"', "shop.orders", key=("id",))
    with closing(lake.keep(names)) as kept:
        lake.set(orders=[order(1, "a"), order(2, "b")], people=[])
        assert rows_of(one(kept, lake)) == [(1, "a"), (2, "b")]
        lake.set(orders=[order(2, "a"), order(1, "b")])
        assert rows_of(one(kept, lake)) == [(1, "b"), (2, "a")]
        lake.set(orders=[order(7, "c"), order(8, "d")])
        assert rows_of(one(kept, lake)) == [(7, "c"), (8, "d")]


ROWS = st.lists(
    st.tuples(st.sampled_from(["a", "b", "", None]), st.integers(-(10**9), 10**9)), max_size=12
)


@settings(max_examples=10, deadline=None)
@given(cuts=st.lists(ROWS, min_size=1, max_size=5))
def test_at_every_cut_it_equals_what_python_counts(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[list[tuple[str | None, int]]]
) -> None:
    lake = SmallLake(tmp_path_factory.mktemp("lake"), {"orders": ORDERS})
    copies = defined("copies", 'SELECT who, amount FROM "shop"."orders"', "shop.orders")
    with closing(lake.keep(BY_WHO, copies)) as kept:
        for rows in cuts:
            amounts = [(who, Decimal(cents) / 100) for who, cents in rows]
            lake.set(orders=[order(i, who, str(a)) for i, (who, a) in enumerate(amounts)])
            grouped, all_rows = kept.entries(lake.row())

            assert Counter(rows_of(all_rows)) == Counter(amounts)
            assert {row[0]: row[1:] for row in rows_of(grouped)} == {
                who: (len(of), sum(of), max(of))
                for who in {who for who, _ in amounts}
                if (of := [amount for name, amount in amounts if name == who])
            }
