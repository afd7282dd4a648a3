"""Make versions of rows of the events of a table, in their order. Pure.

A version holds from the transaction that made it to the one that ended it, ``[from, to)``. However
often a transaction changes a row, it makes one version at most, and none if the tracked columns
are in the end what they were.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from cdc.apply.local.change import Key
from cdc.derive.log.event import Row, RowEvent


@dataclass(frozen=True, slots=True)
class Moment:
    """Describes a commit of the source, or a reading, whose time is not known.

    ``clock`` is the latest time of a commit so far, which a clock that is set back does not change.
    """

    lsn: int
    time: datetime | None = None
    clock: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """Holds one version of a row; it is the row of now while ``end`` is None."""

    values: Row
    begin: Moment
    end: Moment | None
    op: str
    epoch: int
    since: int
    """The LSN from which on it is taken: 0 if what was before it in its epoch is not known."""
    inserted: tuple[int, int]
    """Epoch and LSN of the transaction that inserted the row, or of the reading that found it."""


@dataclass(slots=True)
class Versions:
    """Keeps the versions of some keys: those of now, and those that the last transaction has ended.

    ``tracked`` are the numbers of the columns that make a version.
    """

    tracked: Sequence[int]
    epoch: int
    last: Moment
    current: dict[Key, Version] = field(default_factory=dict)
    ended: dict[Key, Version] = field(default_factory=dict)
    """By the transaction at ``last``; it may bring them back."""
    done: list[Version] = field(default_factory=list)

    def take(self, event: RowEvent) -> None:
        """Go on to the next event, which is no TRUNCATE."""
        self._move_to(moment_of(event, self.last))
        if event.reason is not None or event.key is None:
            return
        if event.op == "d":
            self._end(event.key)
        elif event.after is not None:
            self._put(event.key, event.after, str(event.op))

    def all(self) -> Iterator[Version]:
        """Return all versions that are here."""
        yield from self.done
        yield from self.ended.values()
        yield from self.current.values()

    def _move_to(self, moment: Moment) -> None:
        if moment.lsn != self.last.lsn:
            self.done += self.ended.values()
            self.ended.clear()
        self.last = moment

    def _end(self, key: Key) -> None:
        """End the row of now; one that this transaction made was never there."""
        old = self.current.pop(key, None)
        if old is not None and not self._is_of_this(old):
            self.ended[key] = replace(old, end=self.last)

    def _put(self, key: Key, values: Row, op: str) -> None:
        old = self.current.get(key)
        if old is not None and self._is_same(old, values):
            self.current[key] = replace(old, values=values)
            return
        self._end(key)
        before = self.ended.get(key)
        if before is not None and self._is_same(before, values):
            self.current[key] = replace(self.ended.pop(key), values=values, end=None)
        else:
            how = "u" if before is not None else "c" if op == "u" else op
            own = old is not None and self._is_of_this(old)
            made = replace(old, values=values) if old is not None and own else None
            self.current[key] = made or self._new(values, how, before)

    def _new(self, values: Row, op: str, before: Version | None) -> Version:
        """Begin a version; the row of one that ended here is not inserted again."""
        return Version(
            values=values,
            begin=self.last,
            end=None,
            op=op,
            epoch=self.epoch,
            since=0 if op == "r" else self.last.lsn,
            inserted=(self.epoch, self.last.lsn) if before is None else before.inserted,
        )

    def _is_of_this(self, version: Version) -> bool:
        return version.begin.lsn == self.last.lsn and version.epoch == self.epoch

    def _is_same(self, version: Version, values: Row) -> bool:
        return all(same(version.values[n], values[n]) for n in self.tracked)


def moment_of(event: RowEvent, last: Moment) -> Moment:
    """Return the moment of an event; one whose END has expired is of the moment before."""
    if event.lsn is None:
        return last
    transaction = event.transaction
    time = None if transaction is None else transaction.committed_at
    return Moment(event.lsn, time, later(last.clock, time))


def later(one: datetime | None, other: datetime | None) -> datetime | None:
    """Return the later of two times; None if both are not known."""
    return max((time for time in (one, other) if time is not None), default=None)


def same(one: Any, other: Any) -> bool:  # noqa: ANN401 - any value
    """Return whether two values of a column are equal; NULL equals NULL, and NaN equals NaN."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) or (one != one and other != other)  # noqa: PLR0124 - NaN


def parted(events: Iterable[RowEvent]) -> Iterator[list[RowEvent]]:
    """Yield the events in lists; a TRUNCATE is a list of its own."""
    some: list[RowEvent] = []
    for event in events:
        if event.op == "t" and event.reason is None:
            yield from filter(None, [some, [event]])
            some = []
        else:
            some.append(event)
    if some:
        yield some
