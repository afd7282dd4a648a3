"""A derived table equals its query at every cut, or says which older cut it is at."""

from collections import Counter
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.derive.keep.derived_tables import DerivedTables
from cdc.lake.records.derived_entry import DerivedEntry
from tests.unit.derive.small_lake import SmallLake, defined, rows_of

ORDERS = pa.schema([("id", pa.int64()), ("who", pa.string()), ("amount", pa.decimal128(10, 2))])
PEOPLE = pa.schema([("name", pa.string()), ("country", pa.string())])
BY_WHO = defined(
    "by_who",
    'SELECT who, count(*) AS n, sum(amount) AS total, max(amount) AS most FROM "shop"."orders" '
    "GROUP BY who",
    "shop.orders",
    key=("who",),
)
BIG = 2**63 - 1


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path, {"orders": ORDERS, "people": PEOPLE})


def order(number: int, who: str | None, amount: str = "1.00") -> dict[str, Any]:
    return {"id": number, "who": who, "amount": Decimal(amount)}


def one(kept: DerivedTables, lake: SmallLake) -> DerivedEntry:
    (entry,) = kept.entries(lake.row())
    return entry


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
    assert (metrics["num_target_rows_inserted"], metrics["num_target_rows_deleted"]) == (1, 1)


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
    assert failed.reason == "its query failed: a number is out of the range of its type"
    assert (failed.version, failed.at_cut) == (good.version, good.at_cut)
    assert other.state == "streaming"
    assert (mended.state, rows_of(mended)) == ("streaming", [(3,)])


def test_rows_with_one_key_stop_the_table(lake: SmallLake) -> None:
    """Hazard 54."""
    wrong = defined("wrong", 'SELECT who, id FROM "shop"."orders"', "shop.orders", key=("who",))
    lake.set(orders=[order(1, "a"), order(2, "a")], people=[])
    with closing(lake.keep(wrong)) as kept:
        entry = one(kept, lake)

    assert (entry.state, entry.version) == ("stopped", -1)
    assert entry.reason == "its key (who) is not unique: 2 rows have the same"


def test_what_is_large_is_refused_unless_the_definition_allows_it(lake: SmallLake) -> None:
    full = defined("full", BY_WHO.duckdb, "shop.orders", refresh="full")
    lake.set(orders=[order(number, "a") for number in range(11)], people=[])
    with closing(lake.keep(BY_WHO, full, full_rows=10)) as kept:
        refused, allowed = kept.entries(lake.row())

    assert refused.reason == "its inputs have 11 rows, and it can only be calculated as a whole"
    assert allowed.state == "streaming"


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
