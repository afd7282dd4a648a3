"""The columns of a table as its log describes them, and what a change of them means."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from cdc.errors import CdcError, ErrorKind
from cdc.events.values.lake_types import (
    SOURCE_NAME,
    PgType,
    branches,
    can_be_text,
    from_avro_field,
    lake_type,
    parameters,
)
from cdc.tables import TableId, TableMode

_LADDER: Final = ("smallint", "int", "bigint")
_PLACE: Final[dict[str, frozenset[str]]] = {
    "source": frozenset({"schema", "table", "lsn"}),
    "op": frozenset(),
    "transaction": frozenset({"id"}),
}
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")


@dataclass(frozen=True, slots=True)
class Column:
    """A column under its Postgres name, with its type in the lake (Spark DDL text)."""

    name: str
    type: str
    nullable: bool = True
    as_text: bool = False  # by the operator's choice, where the lake has a type for it


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """What the lake's table holds, without our own columns.

    ``key`` names the columns that identify a row; it is empty unless ``mode`` is KEYED.
    """

    table: TableId
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    mode: TableMode = TableMode.KEYED

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def as_text(self) -> frozenset[str]:
        return frozenset(column.name for column in self.columns if column.as_text)


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Every value of the new schema fits the old one."""


@dataclass(frozen=True, slots=True)
class Additive:
    """The new schema has these columns more, all nullable in the lake."""

    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Incompatible:
    """The table cannot follow."""

    reason: str


Difference = Unchanged | Additive | Incompatible


@dataclass(frozen=True, slots=True, kw_only=True)
class RowField:
    """A column as one writer spells it: the Avro field's name and type, the declared type."""

    name: str
    type: Any
    pg: PgType
    column: Column


def row_fields(schema_json: str) -> tuple[RowField, ...]:
    """The columns a writer's envelope schema carries, in order.

    Raises BAD_EVENT when the schema is not that of a change event.
    """
    for field in _parse(schema_json).get("fields", []):
        if field["name"] in {"before", "after"}:
            for branch in branches(field["type"]):
                if isinstance(branch, dict) and "fields" in branch:
                    return tuple(_row_field(inner) for inner in branch["fields"])
    raise CdcError(
        ErrorKind.BAD_EVENT,
        "an Avro schema is not that of a change event",
        remedy="let no other program write to the connector's topics",
    )


def key_fields(schema_json: str) -> tuple[tuple[str, ...], tuple[RowField, ...]]:
    """The path to the key's record (``("key",)`` when it is hoisted) and its fields."""
    fields = _parse(schema_json).get("fields", [])
    if len(fields) == 1 and fields[0]["name"] == "key":
        for branch in branches(fields[0]["type"]):
            if isinstance(branch, dict) and "fields" in branch:
                return ("key",), tuple(_row_field(inner) for inner in branch["fields"])
    return (), tuple(_row_field(field) for field in fields)


def table_schema_from_avro(
    schema_json: str,
    *,
    table: TableId,
    key: Sequence[str],
    mode: TableMode,
    as_text: Collection[str] = (),
) -> TableSchema:
    """The table a writer schema describes; key and mode come from the source's catalogue.

    ``as_text`` names columns that are kept as text where they can be. Columns that cannot be kept
    (``refused_columns``) are left out.
    """
    columns = tuple(
        text_column(field.column, field.pg) if field.column.name in as_text else field.column
        for field in row_fields(schema_json)
        if not lake_type(field.pg).refused
    )
    return TableSchema(table=table, columns=columns, key=tuple(key), mode=mode)


def text_column(column: Column, pg: PgType) -> Column:
    """The column kept as text, where that is another type than the lake has for it."""
    if column.type == "string" or not can_be_text(pg):
        return column
    return replace(column, type="string", as_text=True)


def diff(old: TableSchema, new: TableSchema) -> Difference:
    """What the lake's table ``old`` must become to hold rows of ``new``.

    A column that is gone stays in the lake and is written no more. Types are compared as the
    lake keeps them: the connector names one column ``serial`` and ``int4`` in turn.
    """
    if old.key != new.key:
        return Incompatible(f"the key changed from {old.key} to {new.key}")
    known = {column.name: column for column in old.columns}
    for column in new.columns:
        before = known.get(column.name)
        if before is not None and not fits(column.type, before.type):
            return Incompatible(f"column {column.name} changed from {before.type} to {column.type}")
    added = tuple(column for column in new.columns if column.name not in known)
    return Additive(added) if added else Unchanged()


def fits(narrow: str, wide: str) -> bool:
    """Whether every value of one lake type is a value of the other, unaltered."""
    if narrow == wide:
        return True
    if narrow in _LADDER and wide in _LADDER:
        return _LADDER.index(narrow) < _LADDER.index(wide)
    if (narrow, wide) == ("float", "double"):
        return True
    old, new = _DECIMAL.fullmatch(narrow), _DECIMAL.fullmatch(wide)
    if old is None or new is None:
        return False
    return int(old[2]) <= int(new[2]) and int(old[1]) - int(old[2]) <= int(new[1]) - int(new[2])


def belongs_to(schema_json: str, topic: str) -> bool:
    """Whether the schema is that of the topic's own events.

    Its namespace is the topic, with another sign for each that Avro does not take in a name.
    """
    namespace = str(_parse(schema_json).get("namespace", ""))
    same = re.sub(r"[^0-9A-Za-z.]", "", namespace) == re.sub(r"[^0-9A-Za-z.]", "", topic)
    return same and envelope_reader(schema_json) is not None


def envelope_reader(schema_json: str) -> str | None:
    """The writer's schema without the row: enough to tell an event's place; None for another."""
    try:
        envelope = dict(json.loads(schema_json))
        fields = {field["name"]: field for field in envelope["fields"]}
        envelope["fields"] = [_pruned(fields[name], names) for name, names in _PLACE.items()]
    except (KeyError, TypeError, ValueError):
        return None
    return json.dumps(envelope)


def _pruned(field: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    if not names:
        return dict(field)
    union = field["type"] if isinstance(field["type"], list) else [field["type"]]
    kept = [
        {**branch, "fields": [f for f in branch["fields"] if f["name"] in names]}
        if isinstance(branch, dict)
        else branch
        for branch in union
    ]
    return {**field, "type": kept if isinstance(field["type"], list) else kept[0]}


def refused_columns(schema_json: str) -> tuple[tuple[str, str], ...]:
    """Columns of a writer's schema that cannot be kept at all, with the reason."""
    kinds = ((field.column.name, lake_type(field.pg)) for field in row_fields(schema_json))
    return tuple((name, kind.reason) for name, kind in kinds if kind.refused)


def _parse(schema_json: str) -> Mapping[str, Any]:
    try:
        parsed = json.loads(schema_json)
    except ValueError:
        parsed = None
    return parsed if isinstance(parsed, dict) else {}


def _row_field(field: Mapping[str, Any]) -> RowField:
    kind = field["type"]
    name = parameters(kind).get(SOURCE_NAME, field["name"])
    nullable = isinstance(kind, list) and "null" in kind
    pg = from_avro_field(field)
    column = Column(name, lake_type(pg).spark, nullable)
    return RowField(name=field["name"], type=kind, pg=pg, column=column)
