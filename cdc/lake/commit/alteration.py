"""Changes a table as a whole: its columns, their names, its properties, its features.

Each change is what Spark's ``ALTER TABLE`` does to a table with column mapping by name: data files
stay as they are, because a column has a name of its own in them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cdc.events.structure.steps import DropColumn, RenameColumn
from cdc.lake.commit.column_ids import LAST_ID, ColumnIds
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.table_metadata import Metadata, Protocol

Fields = Sequence[Mapping[str, Any]]
"""Columns as Delta describes them in a schema."""


@dataclass(frozen=True, slots=True)
class AddColumns:
    """Adds columns, described without ids and physical names; older rows have null in them."""

    fields: Fields


@dataclass(frozen=True, slots=True)
class SetProperties:
    """Sets properties that no data file depends on."""

    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AllowFeature:
    """Allows a feature that its readers and writers then have to know."""

    name: str


Alteration = AddColumns | RenameColumn | DropColumn | SetProperties | AllowFeature
"""The values of a column that is dropped stay in data files, where nobody finds them."""


@dataclass(frozen=True, slots=True)
class Altered:
    """Holds what an alteration's log entry says: the operation's name and parameters, an action."""

    operation: str
    parameters: Mapping[str, str]
    action: Mapping[str, Any]


def altered(protocol: Protocol, table: Metadata, change: Alteration) -> Altered:
    """Return what the change makes of the table.

    Raises TakeMergeError for a column that is not there, or a name that is there already: Spark
    says what is wrong.
    """
    match change:
        case AddColumns(fields):
            return _added(table, fields)
        case RenameColumn(old, new):
            names = {"oldColumnPath": old, "newColumnPath": new}
            renamed = [{**f, "name": new} if f["name"] == old else f for f in _having(table, old)]
            return Altered("RENAME COLUMN", names, _with_fields(table, renamed))
        case DropColumn(name):
            rest = [field for field in _having(table, name) if field["name"] != name]
            return Altered("DROP COLUMNS", {"columns": _text([name])}, _with_fields(table, rest))
        case SetProperties(properties):
            told = {"properties": _text(properties)}
            action = {"metaData": table.with_properties(properties)}
            return Altered("SET TBLPROPERTIES", told, action)
        case AllowFeature(name):
            asked = _protocol(protocol, name)
            return Altered("UPGRADE PROTOCOL", {"newProtocol": _text(asked)}, {"protocol": asked})


def _added(table: Metadata, fields: Fields) -> Altered:
    if (last := table.properties.get(LAST_ID)) is None:
        raise TakeMergeError(f"it lacks the property {LAST_ID}")
    ids = ColumnIds(int(last))
    new = [ids.field(field) for field in fields]
    action = _with_fields(table, [*_fields(table), *new], {LAST_ID: str(ids.last)})
    return Altered("ADD COLUMNS", {"columns": _text([{"column": f} for f in new])}, action)


def _having(table: Metadata, name: str) -> list[dict[str, Any]]:
    """Return the table's columns, of which one has this name."""
    fields = _fields(table)
    if name not in {field["name"] for field in fields}:
        raise TakeMergeError(f"it has no column {name}")
    return fields


def _fields(table: Metadata) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = json.loads(table.action["schemaString"])["fields"]
    return fields


def _with_fields(
    table: Metadata, fields: Fields, properties: Mapping[str, str] | None = None
) -> dict[str, Any]:
    _refuse_twins(field["name"] for field in fields)
    schema = json.dumps({"type": "struct", "fields": list(fields)})
    return {"metaData": {**table.with_properties(properties or {}), "schemaString": schema}}


def _refuse_twins(names: Iterable[str]) -> None:
    """Raise TakeMergeError for two names that differ in case at most, as Spark refuses them."""
    seen = set[str]()
    for name in names:
        if name.lower() in seen:
            raise TakeMergeError(f"it would have two columns {name}")
        seen.add(name.lower())


def _protocol(protocol: Protocol, feature: str) -> dict[str, Any]:
    return {
        "minReaderVersion": protocol.reader,
        "minWriterVersion": protocol.writer,
        "readerFeatures": sorted(protocol.reader_features | {feature}),
        "writerFeatures": sorted(protocol.writer_features | {feature}),
    }


def _text(value: Any) -> str:  # noqa: ANN401 - of the parameters of an operation
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
