"""The columns of a table over all writer schemas of a batch, and why an event is refused: SQL text.

Pure; ``decode`` puts the texts to use. Names it relies on in the frame: ``_op``, ``_moved``,
``_no_row``, ``_problem``, ``value_schema_id``, ``key_schema_id``; one struct per writer of
rows and of keys.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cdc.apply.changes.from_avro import value
from cdc.events.schema import Column, RowField, TableSchema, envelope_reader, key_fields, row_fields
from cdc.events.values.sql_text import spark_name, spark_string
from cdc.tables import TableMode

NO_ROW = "it has no row"
NO_KEY = "it has no key"
UNCHANGED_IN_NEW = "a new row has a value that is only marked as unchanged"
NOT_APPENDED = "a table that is only appended to was changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """One writer schema of the batch: its fields by the name of the table's column."""

    schema_id: int
    fields: Mapping[str, RowField]
    record: str  # the frame's column that holds what it wrote

    @property
    def is_mine(self) -> str:
        return f"value_schema_id = {self.schema_id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPlan:
    """``made`` holds the value of ``sql``; the conditions are None where they cannot be."""

    name: str
    type: str
    made: str
    sql: str
    failed: str | None
    unchanged: str | None
    limit: str = ""


def writers(schemas: Mapping[int, str]) -> list[Writer]:
    """Those that write change events; messages of the others are refused one by one."""
    found = []
    for number, text in sorted(schemas.items()):
        if envelope_reader(text) is not None:
            by_name = {field.column.name: field for field in row_fields(text)}
            found.append(Writer(schema_id=number, fields=by_name, record=f"_event_{number}"))
    return found


def key_writers(schemas: Mapping[int, str]) -> list[Writer]:
    """Those that write a key of columns, under the one field ``key``."""
    found = []
    for number, text in sorted(schemas.items()):
        path, fields = key_fields(text)
        if path:
            by_field = {field.name: field for field in fields}
            found.append(Writer(schema_id=number, fields=by_field, record=f"_key_{number}"))
    return found


def columns(
    target: TableSchema, events: Sequence[Writer], keys: Sequence[Writer], token: str
) -> list[ColumnPlan]:
    """One plan per column of the table, in its order."""
    return [_column(number, target, events, keys, token) for number in range(len(target.columns))]


def keep(plans: Sequence[ColumnPlan]) -> str:
    """Numbers of the columns whose value is only marked as unchanged; null where there is none."""
    marks = [(number, p.unchanged) for number, p in enumerate(plans) if p.unchanged is not None]
    if not marks:
        return "CAST(NULL AS array<int>)"
    some = " OR ".join(f"({condition})" for _, condition in marks)
    numbers = ", ".join(f"IF({condition}, {number}, NULL)" for number, condition in marks)
    return f"IF(_op <> 'd' AND ({some}), filter(array({numbers}), x -> x IS NOT NULL), NULL)"


def reason(plans: Sequence[ColumnPlan], target: TableSchema) -> str:
    """Why an event is refused; null where it is not."""
    cases = [("_problem IS NOT NULL", "_problem")]
    if target.mode is TableMode.APPEND:
        cases.append(("_op NOT IN ('c', 'r')", spark_string(NOT_APPENDED)))
    cases.append(("_op = 't'", "CAST(NULL AS string)"))
    rowless = "_no_row AND _op <> 'd'" if target.mode is TableMode.KEYED else "_no_row"
    cases.append((rowless, spark_string(NO_ROW)))
    cases += [(p.failed, spark_string(lost(p))) for p in plans if p.failed is not None]
    cases += [(f"{p.made} IS NULL", spark_string(NO_KEY)) for p in plans if p.name in target.key]
    marked = [f"({p.unchanged})" for p in plans if p.unchanged is not None]
    if marked:
        # The second half of a key's change gets them later (cdc/apply/changes/changed_keys.py).
        new = "_op IN ('r', 'c') AND NOT _moved" if target.mode is TableMode.KEYED else "_op <> 'd'"
        condition = f"{new} AND ({' OR '.join(marked)})"
        cases.append((condition, spark_string(UNCHANGED_IN_NEW)))
    return f"CASE {' '.join(f'WHEN {when} THEN {then}' for when, then in cases)} END"


def any_of(fields: Sequence[str], kind: str) -> str:
    """The one that is not null."""
    return f"coalesce({', '.join(fields)})" if fields else f"CAST(NULL AS {kind})"


def _column(
    number: int,
    target: TableSchema,
    events: Sequence[Writer],
    keys: Sequence[Writer],
    token: str,
) -> ColumnPlan:
    column = target.columns[number]
    made = f"_value_{number}"
    is_key = column.name in target.key
    whole = is_key or target.mode is not TableMode.KEYED
    found = [(w, field) for w in events if (field := w.fields.get(column.name)) is not None]
    texts = [
        (w, value(field, _raw(w, field, whole=whole), made, column, token)) for w, field in found
    ]
    sql = _by_writer([(w, text.sql) for w, text in texts], column.type)
    return ColumnPlan(
        name=column.name,
        type=column.type,
        made=made,
        sql=_or_from_key(sql, found, keys, column) if is_key else sql,
        failed=_any_writer([(w, text.failed) for w, text in texts]),
        unchanged=None if is_key else _any_writer([(w, text.unchanged) for w, text in texts]),
        limit=next((text.limit for _, text in texts if text.limit), ""),
    )


def _raw(writer: Writer, field: RowField, *, whole: bool) -> str:
    """The field in the row after; of a delete in the row before, where that can be relied on.

    Unless the replica identity is FULL, all but the key is meaningless in the row before.
    """
    name = spark_name(field.name)
    after = f"{writer.record}.after.{name}"
    return f"IF(_op = 'd', {writer.record}.before.{name}, {after})" if whole else after


def _or_from_key(
    sql: str, found: Sequence[tuple[Writer, RowField]], keys: Sequence[Writer], column: Column
) -> str:
    """A delete without a row before still has its key; declared types are in the row's schema."""
    cases = [
        (w, value(replace(written, pg=field.pg), _key_raw(w, field), "NULL", column, "").sql)
        for _, field in found[:1]
        for w in keys
        if (written := w.fields.get(field.name)) is not None
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


def lost(plan: ColumnPlan) -> str:
    """Why an event, or a row that was read, is refused for this column."""
    limit = f": {plan.limit}" if plan.limit else ""
    return f"column {plan.name} holds a value that {plan.type} cannot{limit}"
