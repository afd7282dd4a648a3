"""Turns what a slice of the log gives into transactions; keeps the rows as they are meanwhile."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from cdc.derive.engine.input import Input
from cdc.derive.late.rule import LateRule
from cdc.derive.late.watermark import Event, Row, Transaction
from cdc.derive.late_rows.images import Images
from cdc.derive.log.event import RowEvent
from cdc.derive.log.event import Transaction as Ended
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import TableSchema
from cdc.lake.records.readings import Reading
from cdc.lake.table.merge_plan import DELETED

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_UNKNOWN: Final = Row(None)
"""A row before an event that neither the log nor the table has."""


class InputEvents:
    """Reads the events of one table; ``images`` has its rows as they are before the next."""

    def __init__(self, rule: LateRule, schema: TableSchema, images: Images) -> None:
        self._images, self._table = images, rule.table
        self._time = schema.names.index(rule.window.time)
        self._key = [schema.names.index(name) for name in schema.key]

    def transactions(self, read: Iterable[list[RowEvent] | Reading]) -> Iterator[Transaction]:
        """Yield the transactions, each with all its events.

        What a snapshot or a reading found is no event: it was inserted before, nobody knows when.
        """
        ended: Ended | None = None
        events: list[Event] = []
        for event in self._row_events(read):
            mine = self._ended(event)
            if ended is not None and mine != ended:
                yield _transaction(ended, events)
                events = []
            ended = mine
            self._take(event, events)
        if ended is not None:
            yield _transaction(ended, events)

    def _row_events(self, read: Iterable[list[RowEvent] | Reading]) -> Iterator[RowEvent]:
        """Yield what transactions did; the images have each event once the next is asked for."""
        for some in read:
            if isinstance(some, Reading):
                self._read_again(some)
                continue
            for event in some:
                if event.reason is None and event.op != "r":
                    yield event
                self._note(event)

    def _read_again(self, reading: Reading) -> None:
        at = Input(reading.path, reading.version)
        if reading.whole:
            self._images.begin(at)
        else:
            self._images.merge(at, DELETED)

    def _note(self, event: RowEvent) -> None:
        if event.reason is not None:
            return
        if event.op == "t":
            self._images.begin(None)
        else:
            self._images.set(event.key, event.after)

    def _ended(self, event: RowEvent) -> Ended:
        if event.transaction is None:
            raise CdcError(
                ErrorKind.TABLE_STOPPED,
                f"the log has no end of a transaction of {self._table}",
                remedy="wal2lake derived rebuild begins where the log has all of it",
            )
        return event.transaction

    def _take(self, event: RowEvent, events: list[Event]) -> None:
        """Append what an event did to rows."""
        if event.op == "t":
            events += (self._event(event, row, None) for _, row in self._images.all())
            return
        last = events[-1] if events else None
        if last is not None and (last.offset, last.op, event.op) == (event.offset, "d", "c"):
            before = events.pop().before  # the halves of an update of a table without a key
            events.append(Event(before, self._row(event.after), "u", event.offset))
            return
        events.append(self._event(event, event.before, event.after))

    def _event(
        self, event: RowEvent, old: Sequence[Any] | None, new: Sequence[Any] | None
    ) -> Event:
        before = self._row(old)
        if before is None and event.op != "c":
            before = _UNKNOWN
        image = new if new is not None else old
        key = None if image is None else tuple(image[number] for number in self._key)
        return Event(before, self._row(new), event.op or "", event.offset, key)

    def _row(self, values: Sequence[Any] | None) -> Row | None:
        return None if values is None else Row(values[self._time], values)


def _transaction(ended: Ended, events: Sequence[Event]) -> Transaction:
    return Transaction(microseconds(ended.committed_at), tuple(events), ended.lsn)


def microseconds(time: datetime | None) -> int:
    """Return a time as microseconds since 1970."""
    return 0 if time is None else (time - _EPOCH) // _MICROSECOND
