"""Advance a watermark over the log, transaction by transaction.

The watermark after a transaction follows from that transaction and those before it, so it is the
same however the log is cut into batches, and whenever it is read again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from cdc.derive.late.rule import FUTURE, LateRule
from cdc.errors import CdcError, ErrorKind


@dataclass(frozen=True, slots=True)
class Row:
    """Holds a row of the input before or after an event; its time is None if it has none."""

    time: int | None
    values: Sequence[Any] = ()  # of all columns, in the table's order


@dataclass(frozen=True, slots=True)
class Event:
    """Says what an event did to a row: None before an insert, and after a delete."""

    before: Row | None
    after: Row | None
    op: str = "c"  # the connector's letter
    offset: int = 0
    key: tuple[Any, ...] | None = None  # None in a table without a key


@dataclass(frozen=True, slots=True)
class Transaction:
    """Describes a transaction of the source; ``events`` are those of the input, in order.

    It may be of any tables. A heartbeat is one without events.
    """

    committed: int  # microseconds since 1970
    events: Sequence[Event] = ()
    lsn: int = 0  # end of its commit


@dataclass(frozen=True, slots=True, kw_only=True)
class Watermark:
    """Sums up what a prefix of the log says about lateness."""

    newest: int | None = None  # time of an inserted row that is not from the future
    committed: int | None = None  # the latest commit
    late: int = 0  # events of rows whose windows were all over
    future: int = 0  # inserted rows whose time lies too far after their commit
    no_time: int = 0  # inserted rows without a time

    def time(self, rule: LateRule) -> int | None:
        """Return up to where windows are final; None before anything says so."""
        known = [self.newest] if self.newest is not None else []
        if rule.idle is not None and self.committed is not None:
            known.append(self.committed - rule.idle)
        return max(known) - rule.allowed if known else None

    def after(self, transaction: Transaction, rule: LateRule) -> "Watermark":
        """Return what the log says with one more transaction.

        Its rows are judged by the watermark before it: none of them makes another late.
        """
        closed = self.time(rule)
        inserted = [
            event.after.time
            for event in transaction.events
            if event.before is None and event.after is not None
        ]
        times = [time for time in inserted if time is not None]
        present = [time for time in times if time <= transaction.committed + FUTURE]
        return replace(
            self,
            newest=_latest(self.newest, *present),
            committed=_latest(self.committed, transaction.committed),
            late=self.late + sum(is_late(event, closed, rule) for event in transaction.events),
            future=self.future + len(times) - len(present),
            no_time=self.no_time + len(inserted) - len(times),
        )


def is_late(event: Event, watermark: int | None, rule: LateRule) -> bool:
    """Return whether an event changes a row, or makes one, whose windows were all over."""
    sides = (event.before, event.after)
    return any(
        row is not None and row.time is not None and rule.is_late(row.time, watermark)
        for row in sides
    )


def refuse_no_moment(rule: LateRule, kind: str | None, error: ErrorKind) -> None:
    """Raise the error if the type of the column that decides is known, and is no moment."""
    if kind is not None and not kind.upper().startswith("TIMESTAMP"):
        raise CdcError(
            error,
            f"late: {rule.table}.{rule.window.time} is {kind}, which is no moment",
            remedy="name a column of type timestamp or timestamptz",
        )


def _latest(*times: int | None) -> int | None:
    return max((time for time in times if time is not None), default=None)
