"""Orders that wait for payments: transactions that are known, and what a table has of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from cdc.derive.keep.derived_tables import DerivedTables
from cdc.derive.late.rule import LateRule
from cdc.derive.late.watermark import Event, Row, Transaction
from cdc.derive.late_rows.input_log import LogSlice, Place
from cdc.derive.log.topic_rows import Recent
from cdc.lake.records.ledger import LedgerRow
from cdc.lake.table.positions import KEY_PROPERTY
from cdc.tables import TableId
from tests.unit.derive.late.changing import Found, InCuts, op_of, time
from tests.unit.derive.late.logs import MINUTE
from tests.unit.derive.small_lake import SmallLake

Schemas = Mapping[str, pa.Schema]


def schemas(time: pa.DataType) -> Schemas:
    """Return those of both tables, whose times are of this type."""
    return {
        "orders": pa.schema([("id", pa.int64()), ("placed_at", time)]),
        "payments": pa.schema([("id", pa.int64()), ("order_id", pa.int64()), ("paid_at", time)]),
    }


SCHEMAS: Final = schemas(pa.timestamp("us", "UTC"))
PAYMENTS: Final = TableId("shop", "payments")
WAITS: Final = 15  # minutes, that a payment may come after its order
FROM: Final = f"""\
FROM shop.orders AS o LEFT JOIN shop.payments AS p ON p.order_id = o.id
AND p.paid_at BETWEEN o.placed_at AND o.placed_at + INTERVAL '{WAITS} minutes'"""
PAIRS: Final = f"SELECT o.id, o.placed_at, p.id AS payment {FROM}"
COUNTS: Final = (
    f"SELECT o.id, o.placed_at, count(p.id) AS payments {FROM} GROUP BY o.id, o.placed_at"
)
UNPAID: Final = f"SELECT o.id, o.placed_at {FROM} WHERE p.id IS NULL"
Order = tuple[int, int | None]
"""Its id, and the minute at which it was placed."""
Payment = tuple[int, int, int | None]
"""Its id, that of its order, and its minute."""


@dataclass(frozen=True)
class Did:
    """A transaction: when it was committed, in minutes, and rows before and after its events."""

    committed: int
    payments: Sequence[tuple[Payment | None, Payment | None]] = ()
    orders: Sequence[tuple[Order | None, Order | None]] = ()


def waiting(
    query: str = PAIRS, allowed: str = "0 minutes", policy: str = "keep", emit: str = "updates"
) -> str:
    """Return the definition of ``marts.seen``."""
    late = f"late: {{column: payments.paid_at, allowed: {allowed}, policy: {policy}}}"
    return f"/* ---\n{late}\nemit: {emit}\n--- */\n{query}"


def orders(did: Sequence[Did]) -> list[Order]:
    """Return the orders after these transactions."""
    return _after(change for one in did for change in one.orders)


def payments(did: Sequence[Did]) -> list[Payment]:
    """Return the payments after these transactions."""
    return _after(change for one in did for change in one.payments)


def _after(changes: Iterator[tuple[Any, Any]]) -> list[Any]:
    rows: dict[int, Any] = {}
    for old, new in changes:
        if old is not None:
            assert rows.pop(old[0]) == old
        if new is not None:
            assert new[0] not in rows
            rows[new[0]] = new
    return list(rows.values())


@dataclass
class Waiting(InCuts):
    """Brings a small lake with both tables to cuts of the log, and is its ``InputLog``."""

    did: Sequence[Did]
    upto: int = 0  # how many transactions the next cut has
    schemas: Schemas = field(default_factory=lambda: SCHEMAS)

    def __post_init__(self) -> None:
        self.log = self
        self.lake = SmallLake(self.folder, self.schemas)
        self.lake.set(orders=[], payments=[])
        for name in SCHEMAS:
            table = DeltaTable(self.lake.path(TableId("shop", name)))
            table.alter.set_table_properties({KEY_PROPERTY: '["id"]'}, raise_if_not_exists=False)

    def read(
        self, rule: LateRule, after: Place, row: LedgerRow, recent: Recent | None = None
    ) -> LogSlice:
        assert (rule.table, len(row.tables), recent) == (PAYMENTS, len(SCHEMAS), None)
        begin = after.get("transactions", 0)
        return LogSlice(
            begun=_place(begin),
            place=_place(self.upto),
            columns=self.schemas["payments"],
            transactions=map(self._transaction, range(begin, self.upto)),
        )

    def _transaction(self, number: int) -> Transaction:
        did = self.did[number]
        events = tuple(
            Event(_row(old), _row(new), op_of(old, new), number * 1000 + place, _key(new or old))
            for place, (old, new) in enumerate(did.payments)
        )
        return Transaction(did.committed * MINUTE, events, number)

    def publish(self, kept: DerivedTables, upto: int) -> LedgerRow:
        """Return the row of a cut; a table has a version for it only if it has changed."""
        begun, done = self.did[: self.upto], self.did[:upto]
        if not upto or orders(begun) != orders(done):
            self.lake.set(orders=[_named("orders", one) for one in orders(done)])
        if not upto or payments(begun) != payments(done):
            self.lake.set(payments=[_named("payments", one) for one in payments(done)])
        self.upto = upto
        row = self.lake.row()
        return replace(row, derived=kept.entries(row))


def _place(number: int) -> Place:
    return {"transactions": number, "offset": number * 1000 - 1}


def _row(values: Payment | None) -> Row | None:
    if values is None:
        return None
    number, order, minute = values
    micros = None if minute is None else minute * MINUTE
    return Row(micros, (number, order, micros))


def _key(values: Payment | None) -> tuple[int]:
    assert values is not None
    return (values[0],)


def _named(table: str, row: Sequence[int | None]) -> Mapping[str, Any]:
    *others, minute = row
    values = [*others, None if minute is None else time(minute)]
    return dict(zip(SCHEMAS[table].names, values, strict=True))


def in_cuts(folder: Path, text: str, did: Sequence[Did], number: int) -> list[Found]:
    """Return what there is at each of so many cuts."""
    return Waiting(folder / str(number), did).each(text, len(did), number)
