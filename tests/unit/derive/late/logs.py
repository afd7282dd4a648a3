"""Logs for tests of lateness: transactions in minutes, read in any number of cuts."""

from collections.abc import Sequence
from dataclasses import replace

from cdc.derive.late.rule import LateRule
from cdc.derive.late.watermark import Event, Row, Transaction, Watermark
from cdc.derive.sql.event_window import EventWindow
from cdc.tables import TableId

MINUTE = 60_000_000
HOURLY = EventWindow(form="tumble", time="ts", length=60 * MINUTE, slide=60 * MINUTE)
RULE = LateRule(
    table=TableId("shop", "orders"),
    window=HOURLY,
    shown="window_end",
    shows_end=True,
    allowed=10 * MINUTE,
    rows=TableId("marts", "hours__late"),
)
HOUR_OF_DAY = 60  # minutes


def at(text: str) -> int:
    """Return the minutes of a time of 1970-01-01."""
    hours, minutes = text.split(":")
    return int(hours) * HOUR_OF_DAY + int(minutes)


def row(minutes: int | None) -> Row:
    return Row(None if minutes is None else minutes * MINUTE)


def insert(*minutes: int | None, committed: int) -> Transaction:
    events = tuple(Event(None, row(each)) for each in minutes)
    return Transaction(committed * MINUTE, events)


def delete(minutes: int, *, committed: int) -> Transaction:
    return Transaction(committed * MINUTE, (Event(row(minutes), None),))


def update(old: int, new: int, *, committed: int) -> Transaction:
    return Transaction(committed * MINUTE, (Event(row(old), row(new)),))


def heartbeat(committed: int) -> Transaction:
    return Transaction(committed * MINUTE)


def read(
    log: Sequence[Transaction], rule: LateRule = RULE, *, cuts: int = 1
) -> tuple[Watermark, list[Watermark]]:
    """Return the state after the log, and the one after each of so many cuts.

    Only what the last cut left is known in the next, as in a job that starts anew at every cut.
    """
    state, found = Watermark(), []
    for number in range(cuts):
        begin, end = (len(log) * n // cuts for n in (number, number + 1))
        for transaction in log[begin:end]:
            state = replace(state).after(transaction, rule)
        found.append(state)
    return state, found
