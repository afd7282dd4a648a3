"""Read a table's columns from the Avro schemas of its log, and compare them with the lake's."""

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
    """Describes a column by its Postgres name and its lake type (Spark DDL text)."""

    name: str
    type: str
    nullable: bool = True
    as_text: bool = False  # the operator chose text although the lake has a better type


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSchema:
    """Describes the columns of a lake table, without wal2lake's own.

    ``key`` names the columns that identify a row; it is empty unless ``mode`` is KEYED.
    """

    table: TableId
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    mode: TableMode = TableMode.KEYED

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the columns, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def as_text(self) -> frozenset[str]:
        """Return the names of the columns that the operator chose to keep as text."""
        return frozenset(column.name for column in self.columns if column.as_text)


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Every value of the new schema fits the old one."""


@dataclass(frozen=True, slots=True)
class Additive:
    """The new schema has these additional columns, all nullable in the lake."""

    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Incompatible:
    """The lake's table cannot hold rows of the new schema."""

    reason: str


Difference = Unchanged | Additive | Incompatible


@dataclass(frozen=True, slots=True, kw_only=True)
class RowField:
    """Describes a column in one writer's schema: its Avro name and type, and its declared type."""

    name: str
    type: Any
    pg: PgType
    column: Column


def row_fields(schema_json: str) -> tuple[RowField, ...]:
    """Return the columns in a writer's envelope schema, in order.

    Raises BAD_EVENT if the schema is not that of a change event.
    """
    for field in _parse(schema_json).get("fields", []):
        if field["name"] in {"before", "after"}:
            for branch in branches(field["type"]):
                if isinstance(branch, dict) and "fields" in branch:
                    return tuple(_row_field(inner) for inner in branch["fields"])
    raise CdcError(
        ErrorKind.BAD_EVENT,
        "an Avro schema is not that of a change event",
        remedy="stop any other program that writes to the connector's topics",
    )


def key_fields(schema_json: str) -> tuple[tuple[str, ...], tuple[RowField, ...]]:
    """Return the path to the key's record and its fields.

    The path is ``("key",)`` if the connector wrapped the record in a field, else empty.
    """
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
    """Return the lake table for a writer's schema, with key and mode from the source's catalogue.

    ``as_text`` names columns to keep as text if their type allows it. Columns that cannot be kept
    (``refused_columns``) are left out.
    """
    columns = tuple(
        text_column(field.column, field.pg) if field.column.name in as_text else field.column
        for field in row_fields(schema_json)
        if not lake_type(field.pg).refused
    )
    return TableSchema(table=table, columns=columns, key=tuple(key), mode=mode)


def text_column(column: Column, pg: PgType) -> Column:
    """Return the column kept as text; unchanged if it is a string anyway or cannot be text."""
    if column.type == "string" or not can_be_text(pg):
        return column
    return replace(column, type="string", as_text=True)


def diff(old: TableSchema, new: TableSchema) -> Difference:
    """Return how the lake's table ``old`` must change to hold rows of ``new``.

    A dropped column stays in the lake but is no longer written. Lake types are compared, not
    Postgres names, because the connector calls one column ``serial`` and ``int4`` in turn.
    """
    if old.key != new.key:
        return Incompatible(f"the key changed from {old.key} to {new.key}")
    old_columns = {column.name: column for column in old.columns}
    for column in new.columns:
        before = old_columns.get(column.name)
        if before is not None and not fits(column.type, before.type):
            return Incompatible(f"column {column.name} changed from {before.type} to {column.type}")
    added = tuple(column for column in new.columns if column.name not in old_columns)
    return Additive(added) if added else Unchanged()


def fits(narrow: str, wide: str) -> bool:
    """Return whether every value of one lake type is a value of the other, unaltered."""
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
    """Return whether the schema is that of the topic's own events.

    Its namespace is the topic's name with characters replaced that Avro does not allow.
    """
    namespace = str(_parse(schema_json).get("namespace", ""))
    same = re.sub(r"[^0-9A-Za-z.]", "", namespace) == re.sub(r"[^0-9A-Za-z.]", "", topic)
    return same and envelope_reader(schema_json) is not None


def envelope_reader(schema_json: str) -> str | None:
    """Return the writer's schema without the row, which is enough to read an event's place.

    Returns None if the schema is not that of a change event.
    """
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
    """Return the columns of a writer's schema that cannot be kept at all, as (name, reason)."""
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
