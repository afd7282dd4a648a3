"""Compare the log, event for event, with a second slot read by Postgres's ``test_decoding``.

Neither the connector nor wal2lake takes part in the slot. The log is decoded by fastavro.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from cdc.config import load
from cdc.state.pipeline import resolve
from tests.experiments.labels import Reader
from tests.faults.bank.armed import Armed
from tests.faults.bank.walk import query

SLOT: Final = "witness"
LOG: Final = "_wal2lake/log"
TABLES: Final = (
    *("accounts", "debits", "credits", "audit", "counters", "flicker", "visits"),
    *("thousands", "broad", "reshaped"),
)
OPERATIONS: Final = {"INSERT": "c", "UPDATE": "u", "DELETE": "d"}
_CHANGE: Final = re.compile(r"^table bank\.(\w+): (INSERT|UPDATE|DELETE): (.*)$", re.DOTALL)
_VALUE: Final = re.compile(r"(\w+)\[[^\]]+\]:('(?:[^']|'')*'|\S+)")
_UNCHANGED: Final = "unchanged-toast-datum"
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00)")
Event = tuple[int, str, dict[str, str | None]]
"""Transaction, operation and values by column; a delete has those of its replica identity."""


@dataclass(kw_only=True)
class Witness:
    """A witness of the bank's transactions since its slot was created."""

    bank: Armed
    begin: dict[str, int]  # topic -> last offset before the slot
    reader: Reader

    def compare(self) -> int:
        """Return the number of events; fail if the log has others or another order."""
        expected, logged = self._expected(), self._logged()
        for table in TABLES:
            _assert_same(table, expected[table], logged[table])
        return sum(map(len, expected.values()))

    def _expected(self) -> dict[str, list[Event]]:
        events: dict[str, list[Event]] = {table: [] for table in TABLES}
        with self.bank.connect() as connection:
            rows = connection.execute(
                "SELECT xid::text::bigint, data FROM pg_logical_slot_peek_changes(%s, NULL, NULL)",
                (SLOT,),
            )
            for xid, text in rows:
                change = _CHANGE.match(text)
                if change is not None and change[1] in events:
                    operation = OPERATIONS[change[2]]
                    events[change[1]].append((xid, operation, _values(change[3])))
        return events

    def _logged(self) -> dict[str, list[Event]]:
        events: dict[str, list[Event]] = {table: [] for table in TABLES}
        for row in query(self.bank, LOG, 'SELECT topic, "offset", value FROM t ORDER BY "offset"'):
            table = row["topic"].rpartition(".")[2]
            if table in events and row["offset"] > self.begin.get(row["topic"], -1):
                event = None if row["value"] is None else self.reader.decode(row["value"])
                if event is not None:  # a tombstone is no event
                    events[table].append(_event(event))
        return events


@contextmanager
def witnessed(bank: Armed) -> Iterator[Witness]:
    """Create the witness's slot when no event is in flight; drop it after the block."""
    bank.sync()
    bank.execute(f"SELECT pg_create_logical_replication_slot('{SLOT}', 'test_decoding')")
    try:
        ends = query(bank, LOG, 'SELECT topic, max("offset") AS last FROM t GROUP BY topic')
        yield Witness(
            bank=bank,
            begin={row["topic"]: row["last"] for row in ends},
            reader=Reader(endpoints=resolve(load(bank.config_file)).endpoints),
        )
    finally:
        bank.execute(f"SELECT pg_drop_replication_slot('{SLOT}')")


def _values(text: str) -> dict[str, str | None]:
    """Parse ``id[integer]:1 body[text]:'it''s'``; for an update, only the new row."""
    row = text.rpartition("new-tuple: ")[2]
    return {name: _plain(value) for name, value in _VALUE.findall(row) if value != _UNCHANGED}


def _plain(value: str) -> str | None:
    if value.startswith("'"):
        return _same_form(value[1:-1].replace("''", "'"))
    return None if value == "null" else value


def _same_form(text: str) -> str:
    """Return a moment in one form: the slot and the connector write it each in its own."""
    return datetime.fromisoformat(text).isoformat() if _MOMENT.fullmatch(text) else text


def _event(event: dict[str, Any]) -> Event:
    row = event["before"] if event["op"] == "d" else event["after"]
    texts = {name: None if value is None else _same_form(str(value)) for name, value in row.items()}
    return event["source"]["txId"], event["op"], texts


def _assert_same(table: str, expected: list[Event], logged: list[Event]) -> None:
    """Compare events; for a value that the slot leaves out, the log has a placeholder or none."""
    assert len(logged) == len(expected), f"{table}: {len(logged)} events, and not {len(expected)}"
    for number, (theirs, ours) in enumerate(zip(expected, logged, strict=True)):
        shown = {name: ours[2].get(name) for name in theirs[2]}
        assert (*ours[:2], shown) == theirs, f"{table}: event {number} is another one"
