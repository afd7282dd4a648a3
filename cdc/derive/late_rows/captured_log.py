"""Reads transactions for late rows from the log of the captured tables."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Final

import pyarrow as pa

from cdc.apply.local.arrow import arrow_type
from cdc.derive.engine.input import Input
from cdc.derive.late.rule import Bound, LateRule
from cdc.derive.late.watermark import Transaction, refuse_no_moment
from cdc.derive.late_rows.images import Images
from cdc.derive.late_rows.input_events import InputEvents, microseconds
from cdc.derive.late_rows.input_log import LogSlice
from cdc.derive.late_rows.input_log import Place as Facts
from cdc.derive.log.event import Place
from cdc.derive.log.log_reader import LogReader, place_at
from cdc.derive.log.topic_rows import Recent
from cdc.errors import CdcError, ErrorKind
from cdc.lake.records.ledger import LedgerRow, TableEntry
from cdc.lake.table.store import read_schema
from cdc.tables import TableId

_TABLE: Final = frozenset({"version", "delta_id"})
"""What a place says of the table there."""


@dataclass(frozen=True, slots=True)
class CapturedLog:
    """Reads the log through a ``LogReader``; it is an ``InputLog``."""

    reader_of: Callable[[Recent | None], LogReader]
    given_up: Callable[[str], int]
    """Returns the last offset of a topic that was deleted from the log; -1 if it has all events."""

    def read(
        self, rule: LateRule, after: Facts, row: LedgerRow, recent: Recent | None = None
    ) -> LogSlice:
        """Return the transactions beyond a place, up to a cut.

        Without a place they begin with the log: at the image before which it was given up, if any.
        """
        return _Reading(self.reader_of(recent), self.given_up).read(rule, after, row)


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reads the log once."""

    reader: LogReader
    given_up: Callable[[str], int]

    def read(self, rule: LateRule, after: Facts, row: LedgerRow) -> LogSlice:
        """Return what ``CapturedLog.read`` does."""
        entry = row.entry(str(rule.table))
        schema = None if entry is None else read_schema(entry.path, rule.table, entry.version)
        if entry is None or schema is None:
            raise CdcError(ErrorKind.TABLE_STOPPED, f"the cut has no rows of {rule.table}")
        if isinstance(rule.window, Bound):
            types = {one.name: one.type for one in schema.columns}
            refuse_no_moment(rule, types.get(rule.window.time), ErrorKind.TABLE_STOPPED)
        upto = place_at(row, entry)
        place, at = self._begin(after, entry, upto)
        self._refuse_gap(rule, place, upto)
        images = Images(schema, at)
        read = self.reader.slice(schema, place, upto, images)
        transactions = InputEvents(rule, schema, images).transactions(read)
        if rule.idle is not None:
            transactions = self._with_others(transactions, place, upto)
        return LogSlice(
            begun=asdict(place),
            place={**asdict(upto), "version": entry.version, "delta_id": entry.delta_id},
            columns=pa.schema([(one.name, arrow_type(one.type)) for one in schema.columns]),
            transactions=transactions,
        )

    def _begin(self, after: Facts, entry: TableEntry, upto: Place) -> tuple[Place, Input | None]:
        """Return the place, and the table as it was there: None if it had no rows yet."""
        if after:
            facts = {name: fact for name, fact in after.items() if name not in _TABLE}
            version, delta_id = after["version"], after.get("delta_id", "")
            return Place(**facts), None if version < 0 else Input(entry.path, version, delta_id)
        readings = self.reader.readings_of(entry.table)
        images = [one for one in readings if one.image and one.position.epoch == upto.epoch]
        if images and self._given_up(TableId.parse(entry.table)) >= 0:
            one = images[-1]
            place = Place(
                epoch=upto.epoch,
                offset=one.position.offset,
                marker_offset=-1,
                reading=max((r.number for r in readings if r.number < one.number), default=0),
            )
            return place, Input(one.path, one.version)
        first = Place(epoch=1, offset=-1, marker_offset=-1, reading=0)
        return first, None

    def _refuse_gap(self, rule: LateRule, after: Place, upto: Place) -> None:
        """Raise TABLE_STOPPED if events behind a place are no longer in the log."""
        if after.epoch == upto.epoch and after.offset < self._given_up(rule.table):
            raise CdcError(
                ErrorKind.TABLE_STOPPED,
                f"the log of {rule.table} was given up beyond what its late rows have seen",
                remedy=f"take late out of the definition, drop {rule.rows}, and put late in again",
            )

    def _given_up(self, table: TableId) -> int:
        return self.given_up(table.topic(self.reader.prefix))

    def _with_others(
        self, transactions: Iterator[Transaction], after: Place, upto: Place
    ) -> Iterator[Transaction]:
        """Yield all transactions, those of other tables and heartbeats without events."""
        mine = next(transactions, None)
        for marker in self.reader.markers(after, upto):
            while mine is not None and mine.lsn < marker.lsn:
                yield mine
                mine = next(transactions, None)
            if mine is not None and mine.lsn == marker.lsn:
                yield mine
                mine = next(transactions, None)
            else:
                yield Transaction(microseconds(marker.committed_at), (), marker.lsn)
        if mine is not None:
            yield mine
            yield from transactions
