"""What a person or an operation needs of refused events: their keys, and the events decoded."""

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
"""More of them are not asked for one by one: the whole table is read again."""

SchemaOfId = Callable[[int], str | None]
"""A writer schema by its id; None for one that the registry does not know."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One column of a decoded key."""

    column: str
    field: RowField
    declared: str | None  # the column's type, where the row's schema says it
    value: Any


class Decoder:
    """Reads keys and values by the schemas that they name; what cannot be read is None."""

    def __init__(self, schemas: SchemaOfId) -> None:
        self._schemas = schemas

    def key(self, event: RefusedEvent) -> dict[str, Any] | None:
        """The key for a person, in terms of JSON; None where there is none that can be read."""
        if (plain := _plain_key(event)) is not None:
            return plain
        parts = self._parts(event)
        if parts is None:
            return None
        return {part.column: readable(part.field, part.value, part.declared) for part in parts}

    def key_texts(self, event: RefusedEvent, names: Sequence[str]) -> tuple[str, ...] | None:
        """The key's values as Postgres's texts, in the order of the columns.

        None where the key is not of these columns, or a text is not certain.
        """
        plain, parts = _plain_key(event), self._parts(event)
        texts = plain or {
            part.column: key_text(part.field, part.value, part.declared) for part in parts or ()
        }
        found = [texts.get(name) for name in names]
        if not names or set(texts) != set(names) or None in found:
            return None
        return tuple(str(text) for text in found)

    def value(self, event: RefusedEvent) -> dict[str, Any] | None:
        """The whole message, with the row's values."""
        return self._decoded(event.value)

    def _parts(self, event: RefusedEvent) -> list[_Part] | None:
        frame, record = avro.frame(event.key), self._decoded(event.key)
        text = self._schemas(frame.schema_id) if frame else None
        path, fields = key_fields(text) if text else ((), ())
        if not path or record is None:
            return None  # what is not under ``key`` is no key of columns
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
        """The row's columns by the names they have in Avro: they know more than those of a key."""
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
    """Of a row that a reading of the source refused: texts, in no message."""
    if event.offset >= 0 or event.key is None:
        return None
    found = json.loads(event.key)
    return found if isinstance(found, dict) and found else None


def key_of(config: Config, table: TableId) -> tuple[str, ...]:
    """The columns that identify a row of the lake's table; none where nothing does.

    Raises CONFIG where the lake has no such table.
    """
    opened = open_table(table_path(config, table))
    if opened is None:
        raise CdcError(
            ErrorKind.CONFIG,
            f"the lake has no table {table}",
            remedy="wal2lake status names those it has",
        )
    return tuple(json.loads(opened.metadata().configuration.get(KEY_PROPERTY) or "[]"))


def select(
    events: Iterable[RefusedEvent], table: str, offsets: Sequence[int]
) -> list[RefusedEvent]:
    """Those at the offsets, or all where none is named; raises CONFIG for one that is not there."""
    found = list(events)
    missing = sorted(set(offsets) - {event.offset for event in found})
    if missing or not found:
        what = f"no open event at offset {missing[0]}" if missing else "no open event"
        raise CdcError(
            ErrorKind.CONFIG,
            f"the quarantine has {what} of {table}",
            remedy=f"wal2lake quarantine list {table} --all",
        )
    return [event for event in found if not offsets or event.offset in offsets]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """What is to be read again so that the table is right."""

    options: Mapping[str, str]  # of the operation ``resnapshot``
    keys: int | None  # None: the whole table
    events: int
    why_whole: str = ""


def retry_of(
    chosen: Sequence[RefusedEvent],
    of_table: Sequence[RefusedEvent],
    key: Sequence[str],
    decoder: Decoder,
    *,
    stopped: bool = False,
) -> Retry:
    """The keys of the chosen events, with all open events of these keys; or the whole table.

    A table that is stopped can only be read whole.
    """
    texts = {id(event): decoder.key_texts(event, key) for event in of_table}
    wanted = {texts[id(event)] for event in chosen}
    unknown = [event.offset for event in chosen if texts[id(event)] is None]
    if why := _why_whole(key, unknown, len(wanted), stopped=stopped):
        return Retry(options={"mode": IN_PLACE}, keys=None, events=len(of_table), why_whole=why)
    keys = sorted(found for found in wanted if found is not None)
    offsets = sorted(event.offset for event in of_table if texts[id(event)] in wanted)
    options = {"mode": IN_PLACE, "keys": json.dumps(keys), "offsets": json.dumps(offsets)}
    return Retry(options=options, keys=len(keys), events=len(offsets))


def _why_whole(key: Sequence[str], unknown: Sequence[int], keys: int, *, stopped: bool) -> str:
    if stopped:
        return "the table is stopped"
    if not key:
        return "the table has no key"
    if unknown:
        return f"the key of the event at offset {unknown[0]} cannot be told"
    return f"the events are of {keys:,} keys" if keys > MOST_KEYS else ""


def parse_offset(text: str) -> tuple[str | None, int]:
    """Topic, where it is named, and offset, of ``OFFSET`` or ``TOPIC:OFFSET``."""
    topic, _, number = text.rpartition(":")
    try:
        return topic or None, int(number)
    except ValueError:
        raise CdcError(
            ErrorKind.CONFIG,
            f"{text!r} is no offset",
            remedy="write it as wal2lake quarantine list shows it: 17, or topic:17",
        ) from None
