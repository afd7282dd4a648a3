"""Reads values of one writer's records by the conversions of cdc/apply/changes."""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import fastavro

from cdc.apply.changes.columns import Writer
from cdc.apply.changes.conversion import Of, same
from cdc.apply.changes.from_avro import value
from cdc.apply.local.change import Values
from cdc.events.avro import HEADER
from cdc.events.schema import TableSchema

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """How one column of the table is read from a field of the row."""

    number: int
    field: str
    of: Of | None  # None: the value is taken as it is
    forms: tuple[Any, ...]  # what only marks it as unchanged
    is_key: bool


class RecordReader:
    """Decodes messages of one schema, as Spark does: bytes that are left over do not matter."""

    def __init__(self, schema_json: str) -> None:
        self._schema = fastavro.parse_schema(json.loads(schema_json))

    def read(self, message: bytes) -> tuple[Record | None, bool]:
        """Return the record, None if it cannot be decoded, and whether all its texts are UTF-8."""
        try:
            return self._decoded(message, "strict"), True
        except UnicodeDecodeError:
            pass
        except Exception:  # noqa: BLE001 - the decoder raises errors of any type
            return None, True
        try:
            return self._decoded(message, "surrogateescape"), False
        except Exception:  # noqa: BLE001 - the decoder raises errors of any type
            return None, True

    def _decoded(self, message: bytes, errors: str) -> Record:
        body = io.BytesIO(message)
        body.seek(HEADER)
        record: Record = fastavro.schemaless_reader(  # type: ignore[assignment]
            body, self._schema, None, handle_unicode_errors=errors
        )
        return record


def steps(writer: Writer, target: TableSchema, placeholder: str) -> list[Step]:
    """Return how the columns of a table are read from the writer's rows, in their order."""
    found = []
    for number, column in enumerate(target.columns):
        field = writer.fields.get(column.name)
        if field is not None:
            texts = value(field, "", "", column, placeholder)
            of = None if texts.of is same else texts.of
            is_key = column.name in target.key
            found.append(Step(number, field.name, of, texts.forms, is_key))
    return found


def key_steps(key: Writer, events: Sequence[Writer], target: TableSchema) -> list[Step]:
    """Return how the key is read from the record of a key; declared types are in the row's."""
    found = []
    for number, column in enumerate(target.columns):
        rows = [field for w in events if (field := w.fields.get(column.name)) is not None]
        if column.name in target.key and rows and rows[0].name in key.fields:
            field = replace(key.fields[rows[0].name], pg=rows[0].pg)
            of = value(field, "", "", column, "").of
            found.append(Step(number, field.name, of, (), is_key=True))
    return found


def read_row(row: Record, wanted: Iterable[Step], values: Values, keep: list[int]) -> int | None:
    """Put the row's values into ``values``, and the numbers of unchanged ones into ``keep``.

    Returns the number of the first column whose value has no exact form; None if there is none.
    """
    lost = None
    for step in wanted:
        raw = row[step.field]
        if raw is None:
            continue
        if step.forms and raw in step.forms:
            if not step.is_key:
                keep.append(step.number)
            continue
        if step.of is not None:
            raw = step.of(raw)
            if raw is None and lost is None:
                lost = step.number
        values[step.number] = raw
    return lost


def first_not_text(values: Values) -> int | None:
    """Return the number of the first value that holds bytes which are no text; None if none does.

    Such bytes were decoded to lone surrogates.
    """
    return next((number for number, made in enumerate(values) if not _is_text(made)), None)


def _is_text(made: Any) -> bool:  # noqa: ANN401 - any value
    if isinstance(made, list):
        return all(map(_is_text, made))
    if not isinstance(made, str):
        return True
    try:
        made.encode()
    except UnicodeEncodeError:
        return False
    return True
