"""Reads values of one writer's records by the conversions of cdc/apply/changes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cdc.apply.changes.casts import BLANKS
from cdc.apply.changes.columns import Writer
from cdc.apply.changes.conversion import Of, same
from cdc.apply.changes.from_avro import value
from cdc.apply.local.avro_reader import NotAvroError, reader
from cdc.apply.local.change import Values
from cdc.events.avro import HEADER
from cdc.events.schema import TableSchema

Record = Mapping[str, Any]
_OPS: Final = frozenset("crudt")
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class Step:
    """Says how to read one column of the table from a field of the row."""

    number: int
    field: str
    of: Of | None  # None: the value is taken as it is
    forms: tuple[Any, ...]  # what only marks it as unchanged
    is_key: bool


class RecordReader:
    """Decodes messages of one schema, as Spark does: bytes that are left over do not matter.

    Raises NotLocalError for a schema with a type that the connector does not use.
    """

    def __init__(self, schema_json: str) -> None:
        self._strict = reader(schema_json, "strict")
        self._lenient = reader(schema_json, "surrogateescape")

    def read(self, message: bytes) -> tuple[Record | None, bool]:
        """Return the record, None if it cannot be decoded, and whether all its texts are UTF-8."""
        try:
            return self._strict(message, HEADER)[0], True
        except UnicodeDecodeError:
            pass
        except (NotAvroError, IndexError):
            return None, True
        try:
            return self._lenient(message, HEADER)[0], False
        except (NotAvroError, IndexError):
            return None, True


def event_op(record: Record | None) -> str | None:
    """Return the operation of a change event; None for a record that is none.

    It is none without an operation that is known, or with a transaction id that has no number.
    """
    if record is None or record["op"] not in _OPS or _is_torn(record["transaction"]):
        return None
    op: str = record["op"]
    return op


def _is_torn(transaction: Record | None) -> bool:
    text = None if transaction is None else transaction["id"]
    if text is None:
        return False
    number = text.partition(":")[0].strip(BLANKS)
    return not (_WHOLE.fullmatch(number) and -(2**63) <= int(number) < 2**63)


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
