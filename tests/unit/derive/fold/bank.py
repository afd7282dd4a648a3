"""The account of a bank, whose balance is a fold: the example of the documentation."""

from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from cdc.derive.definition.definition import Definition
from cdc.derive.definition.folder import read_file
from cdc.derive.sql.problem import Problem

EVENTS: Final = pa.schema(
    [
        ("id", pa.int64()),
        ("account_id", pa.int64()),
        ("version", pa.int64()),
        ("kind", pa.string()),
        ("amount", pa.decimal128(20, 2)),
    ]
)
BALANCE: Final = '''\
"""The balance of each account, and whether it is open."""

from decimal import Decimal

table = {
    "doc": "What each account has.",
    "events": "shop.account_events",
    "stream": "account_id",
    "version": "version",
    "columns": {"balance": "numeric(20,2)", "state": "text"},
}


def apply(state, event):
    if event["kind"] == "opened":
        return {"balance": Decimal(0), "state": "open"}
    if state is None or state["state"] == "closed":
        raise Refused("the account is not open")
    if event["kind"] == "closed":
        return {**state, "state": "closed"}
    sign = 1 if event["kind"] == "deposited" else -1
    balance = state["balance"] + sign * event["amount"]
    if balance < 0:
        raise Refused("there is not enough money")
    return {**state, "balance": balance}
'''
REFUSED_COMMANDS: Final = """\
SELECT c.id, c.account_id, c.kind, c.amount
FROM shop.commands AS c LEFT JOIN shop.account_events AS e ON e.command_id = c.id
WHERE e.command_id IS NULL
"""


def fold(text: str = BALANCE, name: str = "marts.balance.py") -> list[Definition]:
    """Return the definitions of the states and of the faults."""
    read, problems = read_file(name, name, text)
    assert problems == []
    return read


def problems_of(text: str, name: str = "marts.balance.py") -> list[Problem]:
    read, found = read_file(name, name, text)
    assert bool(read) != bool(found)
    return found


def happened(
    version: int | None, kind: str, amount: str | None = None, account: int | None = 1
) -> dict[str, Any]:
    """Return an event, whose id tells accounts and versions apart."""
    return {
        "id": 1000 * (account or 0) + (version or 0),
        "account_id": account,
        "version": version,
        "kind": kind,
        "amount": None if amount is None else Decimal(amount),
    }
