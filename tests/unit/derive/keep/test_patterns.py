"""A pattern's table has its matches at every cut, whatever happened to their rows."""

from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from cdc.derive.definition.definition import Definition
from cdc.lake.table.positions import KEY_PROPERTY
from cdc.state.derived_requests import rebuilds
from cdc.tables import TableId
from tests.test_layers import ROOT
from tests.unit.derive.definition.reading import definition
from tests.unit.derive.orders import one
from tests.unit.derive.small_lake import SmallLake, rows_of

PAYMENTS = pa.schema(
    [
        ("id", pa.int64()),
        ("card_id", pa.int64()),
        ("paid_at", pa.timestamp("us", "UTC")),
        ("amount", pa.decimal128(10, 2)),
        ("country", pa.string()),
    ]
)
TWELVE = datetime(2024, 1, 31, 12, tzinfo=UTC)
FRAUD = """\
/* ---
kind: pattern
doc: A test payment, then at least two large ones abroad, within ten minutes.
within: 10 minutes
--- */
SELECT * FROM shop.payments MATCH_RECOGNIZE (
  PARTITION BY card_id ORDER BY paid_at
  MEASURES T.id AS test_id, LAST(L.paid_at) AS last_at, COUNT(L.id) AS n, SUM(L.amount) AS total
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (T L{2,})
  DEFINE T AS T.amount < 1, L AS L.amount > 500 AND L.country <> T.country)
"""
ABC = """\
/* ---
kind: pattern
within: 1 hour
--- */
SELECT * FROM shop.payments MATCH_RECOGNIZE (
  PARTITION BY card_id ORDER BY paid_at
  MEASURES a.id AS a, b.id AS b, c.id AS c PATTERN (a b c)
  DEFINE a AS country = 'A', b AS country = 'B', c AS country = 'C' AND amount > first(a.amount))
"""


def pattern(text: str) -> Definition:
    return definition(text, "marts.fraud.sql")


def paid(
    number: int, minute: float | None, country: str | None, amount: str = "9", card: int = 1
) -> dict[str, Any]:
    return {
        "id": number,
        "card_id": card,
        "paid_at": None if minute is None else TWELVE + timedelta(minutes=minute),
        "amount": Decimal(amount),
        "country": country,
    }


@pytest.fixture
def lake(tmp_path: Path) -> SmallLake:
    return SmallLake(tmp_path, {"payments": PAYMENTS})


def at_each_cut(lake: SmallLake, text: str, *cuts: Sequence[dict[str, Any]]) -> list[list[Any]]:
    """Return the rows after each cut, and compare each with a table that is built from nothing."""
    found = []
    with closing(lake.keep(pattern(text))) as kept:
        for rows in cuts:
            lake.set(payments=rows)
            entry = one(kept, lake)
            assert entry.state == "streaming", entry.reason
            found.append(rows_of(entry))
            rebuilds(lake.folder).ask(pattern(text).table)
            anew = one(kept, lake)
            assert rows_of(anew) == found[-1]
    return found


def test_fraud_is_found_and_is_no_more_when_a_row_changes(lake: SmallLake) -> None:
    test, two = paid(1, 0, "DE", "0.50"), [paid(2, 3, "BR", "600"), paid(3, 10, "BR", "700.10")]

    found = at_each_cut(
        lake,
        FRAUD,
        [test, two[0]],
        [test, *two],
        [test, *two, paid(4, 5, "BR", "501", card=2)],
        [test, two[0], {**two[1], "country": "DE"}],
        [test, two[0], {**two[1], "paid_at": TWELVE + timedelta(minutes=10, microseconds=1)}],
        [paid(1, 0, None, "0.50"), *two],
    )

    match = [(1, 1, TWELVE + timedelta(minutes=10), 2, Decimal("1300.10"))]
    assert found == [[], match, match, [], [], []]


def test_the_middle_is_deleted_and_inserted_late_and_the_end_changes(lake: SmallLake) -> None:
    """Hazard 26."""
    a, b, c = paid(1, 1, "A"), paid(2, 2, "B"), paid(3, 3, "C", "10")

    found = at_each_cut(
        lake, ABC, [a, b, c], [a, c], [a, c, paid(4, 2.5, "B")], [a, {**c, "amount": 9}, b]
    )

    assert found == [[(1, 1, 2, 3)], [], [(1, 1, 4, 3)], []]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_rows_of_one_time_have_one_order_in_every_file(
    lake: SmallLake, order: Sequence[int]
) -> None:
    """Hazard 27: the key decides, and without one all columns do."""
    rows = [paid(1, 1, "A"), paid(2, 1, "B"), paid(3, 1, "C", "10"), paid(4, 1, "B")]

    found = at_each_cut(lake, ABC, [rows[i] for i in order], [*reversed(rows)])

    assert found == [[(1, 1, 2, 3)]] * 2


def test_a_partition_that_is_too_large_stops_the_table(lake: SmallLake) -> None:
    """Hazard 28: the others go on, and this one when the partition is smaller."""
    text = ABC.replace("within: 1 hour", "max_partition_rows: 3")
    rows = [paid(1, 1, "A"), paid(2, 2, "B"), paid(3, 3, "C", "10"), paid(4, 4, "B", card=2)]
    with closing(lake.keep(pattern(text))) as kept:
        lake.set(payments=rows)
        good = one(kept, lake)
        lake.set(payments=[*rows, paid(5, 5, "B")])
        stopped = one(kept, lake)
        lake.set(payments=[*rows, paid(5, None, "B")])  # it has no time, and is in no partition
        mended = one(kept, lake)

    assert stopped.state == "stopped"
    assert stopped.reason == (
        "a partition of its pattern has 4 rows, and may have 3; "
        "remedy: partition by more columns, or raise max_partition_rows in the definition"
    )
    assert stopped.version == good.version
    assert (mended.state, rows_of(mended)) == ("streaming", [(1, 1, 2, 3)])


def test_a_row_without_time_is_in_no_match_and_null_is_a_partition(lake: SmallLake) -> None:
    rows = [paid(1, 1, "A"), paid(2, None, "B"), paid(3, 3, "C", "10")]
    nobody = [{**paid(i, i, "ABC"[i], str(9 + i)), "card_id": None} for i in range(3)]

    assert at_each_cut(lake, ABC, [*rows, *nobody]) == [[(None, 0, 1, 2)]]


def test_the_key_decides_before_other_columns(tmp_path: Path) -> None:
    """Hazard 27: what a row says beside its key puts it nowhere else among its equals in time."""
    fields = [PAYMENTS.field(name) for name in ("country", "card_id", "paid_at", "amount", "id")]
    lake = SmallLake(tmp_path, {"payments": pa.schema(fields)})
    rows = [paid(3, 1, "A"), paid(2, 1, "B"), paid(1, 1, "C", "10")]
    lake.set(payments=rows)
    with closing(lake.keep(pattern(ABC))) as kept:
        without = one(kept, lake)
        table = DeltaTable(lake.path(TableId("shop", "payments")))
        table.alter.set_table_properties({KEY_PROPERTY: '["id"]'}, raise_if_not_exists=False)
        keyed = one(kept, lake)
        lake.set(payments=[{**row, "id": 4 - row["id"]} for row in rows])
        turned = one(kept, lake)

    assert rows_of(without) == [(1, 3, 2, 1)]
    assert rows_of(keyed) == []
    assert rows_of(turned) == [(1, 1, 2, 3)]


def test_the_example_of_the_documentation_is_the_one_that_is_tested() -> None:
    assert FRAUD in (ROOT / "docs" / "derived-tables.md").read_text()
