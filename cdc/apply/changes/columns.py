"""Writes SQL for a table's columns over all writer schemas of a batch, and for refusal reasons.

Pure; ``decode`` uses the texts. They refer to these columns of its frame: ``_op``, ``_moved``,
``_no_row``, ``_problem``, ``value_schema_id``, ``key_schema_id``, and one struct per writer schema
of rows and of keys.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cdc.apply.changes.from_avro import value
from cdc.apply.changes.reasons import NO_KEY, NO_ROW, NOT_APPENDED, UNCHANGED_IN_NEW, loss
from cdc.events.schema import Column, RowField, TableSchema, envelope_reader, key_fields, row_fields
from cdc.events.values.sql_text import spark_name, spark_string
from cdc.tables import TableMode


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Describes one writer schema of the batch, with its fields."""

    schema_id: int
    fields: Mapping[str, RowField]  # by the table's column; of key schemas by the field's own name
    record: str  # the frame's column that holds its decoded messages

    @property
    def is_mine(self) -> str:
        """Return the SQL condition that the message was written with this schema."""
        return f"value_schema_id = {self.schema_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPlan:
    """Holds the SQL texts for one column of the table; a condition is None if it is never true."""

    name: str
    type: str
    made: str  # the frame's column that holds the value of ``sql``
    sql: str
    failed: str | None  # the value has no exact form in the lake
    unchanged: str | None  # the event only marks the value as unchanged
    limit: str = ""  # the values that the type cannot represent, in words

    @property
    def loss(self) -> str:
        """Return the reason for refusing an event whose value has no exact form in this column."""
        return loss(self.name, self.type, self.limit)


def writers(schemas: Mapping[int, str]) -> list[Writer]:
    """Return the schemas of change events; messages with other schemas are refused one by one."""
    event_writers = []
    for number, text in sorted(schemas.items()):
        if envelope_reader(text) is not None:
            by_name = {field.column.name: field for field in row_fields(text)}
            writer = Writer(schema_id=number, fields=by_name, record=f"_event_{number}")
            event_writers.append(writer)
    return event_writers


def key_writers(schemas: Mapping[int, str]) -> list[Writer]:
    """Return the schemas of keys that consist of columns, in the one field ``key``."""
    of_keys = []
    for number, text in sorted(schemas.items()):
        path, fields = key_fields(text)
        if path:
            by_field = {field.name: field for field in fields}
            of_keys.append(Writer(schema_id=number, fields=by_field, record=f"_key_{number}"))
    return of_keys


def columns(
    target: TableSchema, events: Sequence[Writer], keys: Sequence[Writer], placeholder: str
) -> list[ColumnPlan]:
    """Return one plan per column of ``target``, in order."""
    return [
        _column(number, target, events, keys, placeholder) for number in range(len(target.columns))
    ]


def keep(plans: Sequence[ColumnPlan]) -> str:
    """Return SQL text for the numbers of columns that an event marks as unchanged, null if none."""
    marks = [(number, p.unchanged) for number, p in enumerate(plans) if p.unchanged is not None]
    if not marks:
        return "CAST(NULL AS array<int>)"
    some = " OR ".join(f"({condition})" for _, condition in marks)
    numbers = ", ".join(f"IF({condition}, {number}, NULL)" for number, condition in marks)
    return f"IF(_op <> 'd' AND ({some}), filter(array({numbers}), x -> x IS NOT NULL), NULL)"


def reason(plans: Sequence[ColumnPlan], target: TableSchema) -> str:
    """Return SQL text for the reason why an event is refused, null if it is not."""
    cases = [("_problem IS NOT NULL", "_problem")]
    if target.mode is TableMode.APPEND:
        cases.append(("_op NOT IN ('c', 'r')", spark_string(NOT_APPENDED)))
    cases.append(("_op = 't'", "CAST(NULL AS string)"))
    rowless = "_no_row AND _op <> 'd'" if target.mode is TableMode.KEYED else "_no_row"
    cases.append((rowless, spark_string(NO_ROW)))
    cases += [(p.failed, spark_string(p.loss)) for p in plans if p.failed is not None]
    cases += [(f"{p.made} IS NULL", spark_string(NO_KEY)) for p in plans if p.name in target.key]
    marked = [f"({p.unchanged})" for p in plans if p.unchanged is not None]
    if marked:
        # The second half of a key change is completed later (cdc/apply/changes/changed_keys.py).
        new = "_op IN ('r', 'c') AND NOT _moved" if target.mode is TableMode.KEYED else "_op <> 'd'"
        condition = f"{new} AND ({' OR '.join(marked)})"
        cases.append((condition, spark_string(UNCHANGED_IN_NEW)))
    return f"CASE {' '.join(f'WHEN {when} THEN {then}' for when, then in cases)} END"


def any_of(fields: Sequence[str], kind: str) -> str:
    """Return SQL text for the first of the fields that is not null, of type ``kind``."""
    return f"coalesce({', '.join(fields)})" if fields else f"CAST(NULL AS {kind})"


def _column(
    number: int,
    target: TableSchema,
    events: Sequence[Writer],
    keys: Sequence[Writer],
    placeholder: str,
) -> ColumnPlan:
    column = target.columns[number]
    made = f"_value_{number}"
    is_key = column.name in target.key
    whole = is_key or target.mode is not TableMode.KEYED
    written = [(w, field) for w in events if (field := w.fields.get(column.name)) is not None]
    texts = [
        (w, value(field, _raw(w, field, whole=whole), made, column, placeholder))
        for w, field in written
    ]
    sql = _by_writer([(w, text.sql) for w, text in texts], column.type)
    return ColumnPlan(
        name=column.name,
        type=column.type,
        made=made,
        sql=_or_from_key(sql, written, keys, column) if is_key else sql,
        failed=_any_writer([(w, text.failed) for w, text in texts]),
        unchanged=None if is_key else _any_writer([(w, text.unchanged) for w, text in texts]),
        limit=next((text.limit for _, text in texts if text.limit), ""),
    )


def _raw(writer: Writer, field: RowField, *, whole: bool) -> str:
    """Read the field from the row after; for a delete from the row before, where it is reliable.

    Without replica identity FULL, only the key columns of the row before have a meaning.
    """
    name = spark_name(field.name)
    after = f"{writer.record}.after.{name}"
    return f"IF(_op = 'd', {writer.record}.before.{name}, {after})" if whole else after


def _or_from_key(
    sql: str, written: Sequence[tuple[Writer, RowField]], keys: Sequence[Writer], column: Column
) -> str:
    """A delete without a row before still has its key; declared types are in the row's schema."""
    cases = [
        (w, value(replace(key_field, pg=field.pg), _key_raw(w, field), "NULL", column, "").sql)
        for _, field in written[:1]
        for w in keys
        if (key_field := w.fields.get(field.name)) is not None
    ]
    if not cases:
        return sql
    whens = " ".join(f"WHEN key_schema_id = {w.schema_id} THEN {text}" for w, text in cases)
    return f"coalesce({sql}, CASE {whens} END)"


def _key_raw(writer: Writer, field: RowField) -> str:
    return f"{writer.record}.key.{spark_name(field.name)}"


def _by_writer(texts: Sequence[tuple[Writer, str]], kind: str) -> str:
    cases = " ".join(f"WHEN {writer.is_mine} THEN {sql}" for writer, sql in texts)
    return f"CASE {cases} END" if texts else f"CAST(NULL AS {kind})"


def _any_writer(conditions: Sequence[tuple[Writer, str | None]]) -> str | None:
    given = [f"({w.is_mine} AND {sql})" for w, sql in conditions if sql is not None]
    return " OR ".join(given) or None
