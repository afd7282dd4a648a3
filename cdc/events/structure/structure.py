"""Represent a table's structure as the source's catalogue has it at one place in the log.

The source writes it as JSON to ``wal2lake.structure`` (cdc/source/notes/triggers.py). The same
JSON, with the lake's types added, is stored with the lake table. Columns are identified by number,
which Postgres never reuses, not by name.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import Column
from cdc.events.structure.declared import DeclaredType, source_column
from cdc.events.values.lake_types import PgType, can_be_text, lake_type
from cdc.tables import TableId, TableMode, names_column

_NO_KEY: Final = "has neither a primary key nor REPLICA IDENTITY FULL now"
_NOTHING: Final = "has REPLICA IDENTITY NOTHING: updates and deletes would not arrive"
_MISMATCH: Final = "its replica identity is an index without the columns of its primary key"


@dataclass(frozen=True, slots=True, kw_only=True)
class StructureColumn:
    """Describes a column; ``lake``, its type in the lake, may be wider than the source needs."""

    number: int  # pg_attribute.attnum
    name: str
    lake: str  # Spark DDL text
    arrives: bool
    declared: DeclaredType
    pg: PgType
    missing: str | None = None
    """The value, as Postgres's text, that rows older than the column show."""
    has_default: bool = False
    """Whether it has a default; after a rewrite each older row holds a value of its own."""
    not_null: bool = False
    generated: bool = False
    labels: tuple[tuple[int, str], ...] = ()
    """The values of the enums in its type: the OID and the label of each."""
    parts: str = ""
    """The numbers and types of the attributes of the composite types in its type."""
    namesake: str = ""
    """Another type with the same name as its own, for which the connector takes it."""
    left_out: bool = False
    """Whether the lake lacks it because of ``source.schema_changes: ignore``, though it arrives."""
    mask: str = ""
    """What ``source.columns`` does to its values (cdc/config/masks.py); empty: nothing."""

    @property
    def followed(self) -> bool:
        """Return whether the lake has a column for it."""
        return self.arrives and not self.left_out

    @property
    def column(self) -> Column:
        """Return the column as the lake's table has it."""
        is_text = self.lake == "string" and lake_type(self.pg).spark != "string"
        return Column(self.name, self.lake, as_text=is_text and can_be_text(self.pg))


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """Holds a table's columns, even those that do not arrive, its key and its replica identity."""

    oid: int
    table: TableId
    kind: str  # pg_class.relkind: r, p
    identity: str  # pg_class.relreplident: d, f, i, n
    primary_key: tuple[str, ...]
    identity_index: tuple[str, ...]
    filenode: int  # changes with every rewrite and TRUNCATE
    columns: tuple[StructureColumn, ...]

    @property
    def key(self) -> tuple[str, ...]:
        """Return the names of the columns that identify a row; empty if the table has no key."""
        return self.primary_key or (self.identity_index if self.identity == "i" else ())

    @property
    def followed(self) -> tuple[StructureColumn, ...]:
        """Return the columns that the lake's table has, in the source's order."""
        return tuple(column for column in self.columns if column.followed)

    def numbered(self) -> dict[int, StructureColumn]:
        """Return the columns by number."""
        return {column.number: column for column in self.columns}

    def key_numbers(self) -> frozenset[int]:
        """Return the numbers of the key's columns."""
        return frozenset(column.number for column in self.columns if column.name in self.key)

    def mode(self, *, append: bool) -> TableMode | str:
        """Return how the table's events become rows, or the reason why they cannot."""
        if self.identity == "n":
            return _NOTHING
        if self.identity == "i" and not set(self.primary_key) <= set(self.identity_index):
            return _MISMATCH
        if self.key:
            return TableMode.KEYED
        if append:
            return TableMode.APPEND
        return TableMode.MULTISET if self.identity == "f" else _NO_KEY

    def to_text(self) -> str:
        """Return JSON for ``parse``; equal structures give equal text."""
        return json.dumps(_as_json(self), ensure_ascii=False, sort_keys=True)


def kept_as_text(structure: Structure, patterns: list[str]) -> Structure:
    """Return the structure with the columns that ``patterns`` name kept as text.

    Use it only before the lake has the table.
    """
    columns = (
        replace(column, lake="string")
        if can_be_text(column.pg) and names_column(structure.table, column.name, patterns)
        else column
        for column in structure.columns
    )
    return replace(structure, columns=tuple(columns))


def unpublished_from(text: str) -> str:
    """Return the publication that a note says its table has left; empty if it names none."""
    try:
        return str(json.loads(text).get("unpublished_from") or "")
    except (AttributeError, ValueError):
        return ""  # not a note: ``parse`` refuses it


def parse(text: str) -> Structure:
    """Read a structure from the source's note, the catalogue's JSON or the text of ``to_text``.

    Raises BAD_EVENT for anything else, and if the source could not describe the table.
    """
    try:
        fields = json.loads(text)
        if failure := fields.get("failed"):
            raise CdcError(
                ErrorKind.BAD_EVENT,
                f"the source could not describe the structure of table {fields['oid']}",
                detail=f"SQLSTATE {failure}",
                remedy="see the warning in the source's log, then run wal2lake check",
            )
        return _structure(fields)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CdcError(
            ErrorKind.BAD_EVENT,
            "a row of wal2lake.structure does not describe a table's structure",
            detail=type(error).__name__,
            remedy="let only wal2lake's event trigger write to that table",
        ) from None


def _structure(fields: Mapping[str, Any]) -> Structure:
    return Structure(
        oid=int(fields["oid"]),
        table=TableId(str(fields["schema"]), str(fields["table"])),
        kind=str(fields["kind"]),
        identity=str(fields["identity"]),
        primary_key=tuple(map(str, fields["primary_key"])),
        identity_index=tuple(map(str, fields["identity_index"])),
        filenode=int(fields["filenode"]),
        columns=tuple(_column(column) for column in fields["columns"]),
    )


def _column(fields: Mapping[str, Any]) -> StructureColumn:
    declared = DeclaredType.of(fields)
    column = source_column(
        fields["name"], declared, not_null=fields["not_null"], generated=fields["generated"]
    )
    return StructureColumn(
        number=int(fields["number"]),
        name=column.name,
        # A stored type wins: a later version of wal2lake may map the source's type differently.
        lake=fields.get("lake", column.type),
        arrives=fields.get("arrives", column.arrives),
        declared=declared,
        pg=column.pg,
        missing=fields["missing"],
        has_default=fields["default"],
        not_null=fields["not_null"],
        generated=fields["generated"],
        labels=tuple((int(oid), label) for oid, label in (fields.get("labels") or {}).items()),
        parts=fields["parts"],
        namesake=fields.get("namesake") or "",
        left_out=fields.get("left_out", False),
        mask=fields.get("mask", ""),
    )


def _as_json(structure: Structure) -> dict[str, Any]:
    return {
        "oid": structure.oid,
        "schema": structure.table.schema,
        "table": structure.table.name,
        "kind": structure.kind,
        "identity": structure.identity,
        "primary_key": structure.primary_key,
        "identity_index": structure.identity_index,
        "filenode": structure.filenode,
        "columns": [_column_as_json(column) for column in structure.columns],
    }


def _column_as_json(column: StructureColumn) -> dict[str, Any]:
    return {
        "number": column.number,
        "name": column.name,
        "type": column.declared.name,
        "kind": column.declared.kind,
        "modifier": column.declared.modifier,
        "element": column.declared.element,
        "element_kind": column.declared.element_kind,
        "domain": column.declared.domain,
        "dimensions": column.declared.dimensions,
        "not_null": column.not_null,
        "generated": column.generated,
        "missing": column.missing,
        "default": column.has_default,
        "parts": column.parts,
        **({"namesake": column.namesake} if column.namesake else {}),
        "labels": {str(oid): label for oid, label in column.labels},
        "lake": column.lake,
        "arrives": column.arrives,
        "left_out": column.left_out,
        **({"mask": column.mask} if column.mask else {}),
    }
