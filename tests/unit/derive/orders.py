"""Orders and people, and a derived table over them."""

from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from cdc.derive.keep.derived_tables import DerivedTables
from cdc.lake.records.derived_entry import DerivedEntry
from tests.unit.derive.small_lake import SmallLake, defined

ORDERS: Final = pa.schema(
    [("id", pa.int64()), ("who", pa.string()), ("amount", pa.decimal128(10, 2))]
)
PEOPLE: Final = pa.schema([("name", pa.string()), ("country", pa.string())])
BY_WHO: Final = defined(
    "by_who",
    'SELECT who, count(*) AS n, sum(amount) AS total, max(amount) AS most FROM "shop"."orders" '
    "GROUP BY who",
    "shop.orders",
    key=("who",),
)
BIG: Final = 2**63 - 1


def order(number: int, who: str | None, amount: str = "1.00") -> dict[str, Any]:
    return {"id": number, "who": who, "amount": Decimal(amount)}


def one(kept: DerivedTables, lake: SmallLake) -> DerivedEntry:
    """Bring the only table to the next cut."""
    (entry,) = kept.entries(lake.row())
    return entry
