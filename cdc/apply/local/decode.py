"""Decodes events of the log to typed changes, as ``cdc.apply.changes.decode`` does by Spark.

Nothing is dropped silently: a message that is not a change event of its table, or has a value that
the lake cannot hold exactly, comes out with a reason, and with the same one.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from cdc.apply.changes import columns, reasons
from cdc.apply.local.change import Change, LogEvent, Values
from cdc.apply.local.identity import key_of
from cdc.apply.local.row_reader import (
    Record,
    RecordReader,
    Step,
    event_op,
    first_not_text,
    key_steps,
    read_row,
    steps,
)
from cdc.events.schema import TableSchema
from cdc.tables import TableMode

_NEW: Final = frozenset("cr")


class TableDecoder:
    """Decodes the events of one table; can be kept as long as ``target`` and schemas are these.

    ``schemas`` are the writer schemas by id, as the registry returns them, ``key_schemas`` those
    of keys; unknown ids are left out.
    """

    def __init__(
        self,
        schemas: Mapping[int, str],
        target: TableSchema,
        *,
        placeholder: str,
        key_schemas: Mapping[int, str] | None = None,
    ) -> None:
        self._target, self._known = target, frozenset(schemas)
        keyed = target.mode is TableMode.KEYED
        events = columns.writers(schemas)
        keys = columns.key_writers(key_schemas or {}) if keyed else []
        plans = columns.columns(target, events, keys, placeholder)
        self._losses = [plan.loss for plan in plans]
        self._readers = {w.schema_id: RecordReader(schemas[w.schema_id]) for w in events}
        self._steps = {w.schema_id: steps(w, target, placeholder) for w in events}
        self._key_readers = {
            w.schema_id: (RecordReader((key_schemas or {})[w.schema_id]), w) for w in keys
        }
        self._key_steps = {w.schema_id: key_steps(w, events, target) for w in keys}
        self._key_of = key_of(target)

    def decode(self, events: Iterable[LogEvent]) -> list[Change]:
        """Return the changes in the order of the events.

        In MULTISET mode an update becomes two changes with one offset, a delete and a create.
        """
        return [change for event in events for change in self.decode_one(event)[1]]

    def decode_one(self, event: LogEvent) -> tuple[Record | None, list[Change]]:
        """Return the event's record, None if it has none, and its changes as ``decode`` does."""
        record, is_text = self._record(event)
        op = record["op"] if record is not None else None
        halves = "dc" if op == "u" and self._target.mode is TableMode.MULTISET else (op,)
        changes = [self._change(event, record, half, is_text=is_text) for half in halves]
        return record, changes

    def _record(self, event: LogEvent) -> tuple[Record | None, bool]:
        number = event.value_schema_id
        reader = None if number is None else self._readers.get(number)
        return (None, True) if reader is None else reader.read(event.value)

    def _change(
        self, event: LogEvent, record: Record | None, op: str | None, *, is_text: bool
    ) -> Change:
        values: Values = [None] * len(self._target.columns)
        keep: list[int] = []
        image, lost = None, None
        if record is not None:
            assert event.value_schema_id is not None  # noqa: S101 - a reader has a schema
            image = record.get("before" if op == "d" else "after")
            wanted = self._steps[event.value_schema_id]
            lost = self._read(record, op, wanted, values, keep)
        if op == "d" and image is None:
            is_text = self._read_key(event, values) and is_text
        if not is_text:
            lost = _first(lost, first_not_text(values))
        reason = self._problem(event, record) or self._refusal(
            op, values, lost, no_row=image is None, marked=bool(keep), moved=event.moved
        )
        kept = () if op == "d" else tuple(keep)
        return Change(event.offset, op, values, self._key_of(values), kept, reason)

    def _read(
        self, record: Record, op: str | None, wanted: list[Step], values: Values, keep: list[int]
    ) -> int | None:
        """Read the row after; of a delete the row before, where it is reliable."""
        after = record.get("after")
        if op != "d":
            return None if after is None else read_row(after, wanted, values, keep)
        before, rest = record.get("before"), None
        if self._target.mode is TableMode.KEYED:
            others = [step for step in wanted if not step.is_key]
            rest = None if after is None else read_row(after, others, values, keep)
            wanted = [step for step in wanted if step.is_key]
        return _first(None if before is None else read_row(before, wanted, values, keep), rest)

    def _read_key(self, event: LogEvent, values: Values) -> bool:
        """Read the key of a delete without a row before; return whether its texts are UTF-8."""
        if event.key is None or event.key_schema_id not in self._key_readers:
            return True
        found = self._key_readers[event.key_schema_id]
        record, is_text = found[0].read(event.key)
        key = None if record is None else record["key"]
        if key is not None:
            read_row(key, self._key_steps[found[1].schema_id], values, [])
        return is_text

    def _problem(self, event: LogEvent, record: Record | None) -> str | None:
        """Return why a message is no event of this table; None if it is one."""
        if event.value_schema_id is None:
            return reasons.NO_FRAME
        if event.value_schema_id not in self._known:
            return reasons.UNKNOWN_SCHEMA
        if record is None or event_op(record) is None:
            return reasons.NOT_AN_EVENT
        source, table = record["source"] or {}, self._target.table
        is_mine = source.get("schema") == table.schema and source.get("table") == table.name
        return None if is_mine else reasons.WRONG_TABLE

    def _refusal(
        self,
        op: str | None,
        values: Values,
        lost: int | None,
        *,
        no_row: bool,
        marked: bool,
        moved: bool,
    ) -> str | None:
        """Return why an event of this table is refused; None if it is not."""
        keyed = self._target.mode is TableMode.KEYED
        if self._target.mode is TableMode.APPEND and op not in _NEW:
            return reasons.NOT_APPENDED
        if op == "t":
            return None
        if no_row and not (keyed and op == "d"):
            return reasons.NO_ROW
        if lost is not None:
            return self._losses[lost]
        if keyed and self._key_of(values) is None:
            return reasons.NO_KEY
        # The second half of a key change is completed later (changed_keys.py).
        is_new = (op in _NEW and not moved) if keyed else op != "d"
        return reasons.UNCHANGED_IN_NEW if marked and is_new else None


def _first(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else min(one, other)
