"""Decode refused events and their keys, for people and for the operations that retry them."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.events import avro
from cdc.events.key_texts import key_text, readable
from cdc.events.schema import RowField, key_fields, row_fields
from cdc.lake.layout import table_path
from cdc.lake.records.quarantine import RefusedEvent
from cdc.lake.table.positions import KEY_PROPERTY, open_table
from cdc.state.operation import IN_PLACE
from cdc.tables import TableId

MOST_KEYS: Final = 1000
"""With more keys than this, a retry reads the whole table instead of single rows."""

SchemaOfId = Callable[[int], str | None]
"""Returns the writer schema with an id; None if the registry does not know it."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Holds one column of a decoded key."""

    column: str
    field: RowField
    declared: str | None  # the column's Postgres type, where the row's schema has it
    value: Any


class Decoder:
    """Decodes keys and values with the schemas that they name; None for what it cannot decode."""

    def __init__(self, schemas: SchemaOfId) -> None:
        self._schemas = schemas

    def key(self, event: RefusedEvent) -> dict[str, Any] | None:
        """Return the key by column, readable and fit for JSON; None if there is none to decode."""
        if (plain := _plain_key(event)) is not None:
            return plain
        parts = self._parts(event)
        if parts is None:
            return None
        return {part.column: readable(part.field, part.value, part.declared) for part in parts}

    def key_texts(self, event: RefusedEvent, names: Sequence[str]) -> tuple[str, ...] | None:
        """Return the key's values as Postgres prints them, in the order of the columns ``names``.

        Return None if the key has other columns, or if the text of a value is not certain.
        """
        plain, parts = _plain_key(event), self._parts(event)
        texts = plain or {
            part.column: key_text(part.field, part.value, part.declared) for part in parts or ()
        }
        ordered = [texts.get(name) for name in names]
        if not names or set(texts) != set(names) or None in ordered:
            return None
        return tuple(str(text) for text in ordered)

    def value(self, event: RefusedEvent) -> dict[str, Any] | None:
        """Return the whole decoded message, with the row's values."""
        return self._decoded(event.value)

    def _parts(self, event: RefusedEvent) -> list[_Part] | None:
        frame, record = avro.frame(event.key), self._decoded(event.key)
        text = self._schemas(frame.schema_id) if frame else None
        path, fields = key_fields(text) if text else ((), ())
        if not path or record is None:
            return None  # only the fields under ``key`` are columns of the key
        of_row, hoisted = self._row(event), record["key"] or {}
        return [
            _Part(
                of_row[field.name].column.name if field.name in of_row else field.column.name,
                field,
                of_row[field.name].pg.name if field.name in of_row else None,
                hoisted.get(field.name),
            )
            for field in fields
        ]

    def _row(self, event: RefusedEvent) -> Mapping[str, RowField]:
        """Return the row's columns by Avro name; they say more of a type than the key's do."""
        frame = avro.frame(event.value)
        text = self._schemas(frame.schema_id) if frame else None
        try:
            return {field.name: field for field in row_fields(text)} if text else {}
        except CdcError:
            return {}

    def _decoded(self, data: bytes | None) -> dict[str, Any] | None:
        frame = avro.frame(data)
        text = self._schemas(frame.schema_id) if frame else None
        if frame is None or text is None:
            return None
        try:
            return avro.decode(text, frame.body)
        except CdcError:
            return None


def _plain_key(event: RefusedEvent) -> dict[str, Any] | None:
    """Return the key of a row that a reading of the source refused: it is JSON, not Avro."""
    if event.offset >= 0 or event.key is None:
        return None
    key = json.loads(event.key)
    return key if isinstance(key, dict) and key else None


def key_of(config: Config, table: TableId) -> tuple[str, ...]:
    """Return the key columns of the lake's table; empty for a table without a key.

    Raises CONFIG if the lake has no such table.
    """
    opened = open_table(table_path(config, table))
    if opened is None:
        raise CdcError(
            ErrorKind.CONFIG,
            f"the lake has no table {table}",
            remedy="check the name: wal2lake status lists the tables",
        )
    return tuple(json.loads(opened.metadata().configuration.get(KEY_PROPERTY) or "[]"))


def select(
    events: Iterable[RefusedEvent], table: str, offsets: Sequence[int]
) -> list[RefusedEvent]:
    """Return the events at the offsets, or all events when no offset is named.

    Raises CONFIG for an offset that none of the events has, and when there are no events.
    """
    candidates = list(events)
    missing = sorted(set(offsets) - {event.offset for event in candidates})
    if missing or not candidates:
        what = f"no open event at offset {missing[0]}" if missing else "no open event"
        raise CdcError(
            ErrorKind.CONFIG,
            f"the quarantine has {what} of {table}",
            remedy=f"see what it has: wal2lake quarantine list {table} --all",
        )
    return [event for event in candidates if not offsets or event.offset in offsets]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Describes the resnapshot that puts a table right after its events were refused."""

    options: Mapping[str, str]  # for the operation ``resnapshot``
    keys: int | None  # how many keys are read; None: the whole table
    events: int  # how many refused events it settles
    why_whole: str = ""  # why the whole table is read; empty when single keys are


def retry_of(
    chosen: Sequence[RefusedEvent],
    of_table: Sequence[RefusedEvent],
    key: Sequence[str],
    decoder: Decoder,
    *,
    stopped: bool = False,
) -> Retry:
    """Return a retry of the keys of the chosen events, or of the whole table.

    It settles every open event (``of_table``) that has one of these keys. A table that is stopped
    can only be read whole.
    """
    texts = {id(event): decoder.key_texts(event, key) for event in of_table}
    wanted = {texts[id(event)] for event in chosen}
    unknown = [event.offset for event in chosen if texts[id(event)] is None]
    if why := _why_whole(key, unknown, len(wanted), stopped=stopped):
        return Retry(options={"mode": IN_PLACE}, keys=None, events=len(of_table), why_whole=why)
    keys = sorted(key_texts for key_texts in wanted if key_texts is not None)
    offsets = sorted(event.offset for event in of_table if texts[id(event)] in wanted)
    options = {"mode": IN_PLACE, "keys": json.dumps(keys), "offsets": json.dumps(offsets)}
    return Retry(options=options, keys=len(keys), events=len(offsets))


def _why_whole(key: Sequence[str], unknown: Sequence[int], keys: int, *, stopped: bool) -> str:
    if stopped:
        return "the table is stopped"
    if not key:
        return "the table has no key"
    if unknown:
        return f"the key of the event at offset {unknown[0]} cannot be determined"
    return f"the events have {keys:,} different keys" if keys > MOST_KEYS else ""


def parse_offset(text: str) -> tuple[str | None, int]:
    """Return topic (or None) and offset from ``OFFSET`` or ``TOPIC:OFFSET``. Raises CONFIG."""
    topic, _, number = text.rpartition(":")
    try:
        return topic or None, int(number)
    except ValueError:
        raise CdcError(
            ErrorKind.CONFIG,
            f"{text!r} is not an offset",
            remedy="write it as wal2lake quarantine list shows it: 17 or topic:17",
        ) from None
