"""Find the late rows of transactions, and what became of each in its final window."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from cdc.derive.late.rule import Bound, LateRule
from cdc.derive.late.watermark import Event, Row, Transaction, Watermark

EFFECT: Final = "_effect"
OFFSET: Final = "_offset"
CUT: Final = "_cut"
"""Columns of a table of late rows, beside those of the input."""
Place = tuple[object, ...]
"""A key and the start of a window: where a final window has a row, or has none."""


class Effect(StrEnum):
    """Says what became of a late row."""

    ADDED = "added"  # the window counts it
    REMOVED = "removed"  # the window does not count it any more
    LEFT_OUT = "left out"  # the window does not count it, though the source has it
    KEPT = "kept"  # the window counts it still, though the source has it no more
    ADMITTED = "admitted"  # no event: what was late of the place counts after all


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRow:
    """Describes a row for which a window was over; times are in microseconds since 1970."""

    row: Row
    op: str  # the connector's letter of its event
    effect: Effect
    offset: int
    lsn: int
    watermark: int
    start: int  # of that window: the row's last one, if it is counted
    end: int


@dataclass(frozen=True, slots=True)
class Admitted:
    """Names the places where late rows count after all: those of events up to an offset."""

    upto: int
    places: frozenset[Place]


@dataclass(slots=True)
class Judge:
    """Judges transactions in the order of the log; ``state`` is what it has seen so far.

    With ``policy: aside`` a window is as it was when it became final. So the first late event of a
    key in a window decides, and ``frozen`` has all those places. With a bound, which rows had
    waited long enough is another matter for each: all events of late rows are noted.

    ``admitted`` are admissions that lie before, oldest first: behind each of them the next late
    event at one of its places decides again.
    """

    rule: LateRule
    state: Watermark = field(default_factory=Watermark)
    frozen: set[Place] = field(default_factory=set)
    admitted: list[Admitted] = field(default_factory=list)

    def judge(self, transactions: Iterable[Transaction]) -> Iterator[LateRow]:
        """Yield the late rows of the transactions, and take them into the state."""
        for transaction in transactions:
            closed = self.state.time(self.rule)
            self._admit(transaction)
            for event in transaction.events if closed is not None else ():
                for row, start, effect in self._effects(event, closed):
                    yield self._late(row, start, effect, event, transaction, closed or 0)
            self.state = self.state.after(transaction, self.rule)

    def _admit(self, transaction: Transaction) -> None:
        for event in transaction.events[:1]:
            while self.admitted and self.admitted[0].upto < event.offset:
                self.frozen -= self.admitted.pop(0).places

    def _effects(self, event: Event, closed: int | None) -> Iterator[tuple[Row, int, Effect]]:
        """Yield what became of each row of an event in each window for which it is late."""
        aside, decided = self.rule.policy == "aside", set[Place]()
        for row, start, is_before in self._windows(event, closed):
            if not aside:
                yield row, start, Effect.REMOVED if is_before else Effect.ADDED
                continue
            place = (*(event.key or ()), start)
            if place not in self.frozen:
                yield row, start, Effect.KEPT if is_before else Effect.LEFT_OUT
                decided.add(place)
        if not isinstance(self.rule.window, Bound):
            self.frozen |= decided

    def _windows(self, event: Event, closed: int | None) -> Iterator[tuple[Row, int, bool]]:
        for row, is_before in ((event.before, True), (event.after, False)):
            if row is not None and row.time is not None:
                for start in self.rule.late_starts(row.time, closed):
                    yield row, start, is_before

    def _late(  # noqa: PLR0917 - the parts of a late row
        self,
        row: Row,
        start: int,
        effect: Effect,
        event: Event,
        transaction: Transaction,
        closed: int,
    ) -> LateRow:
        return LateRow(
            row=row,
            op=event.op,
            effect=effect,
            offset=event.offset,
            lsn=transaction.lsn,
            watermark=closed,
            start=start,
            end=self.rule.end(start),
        )
