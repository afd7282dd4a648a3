"""A table's structure as the source's catalogue has it, at one place of the log.

The source notes it as JSON in ``wal2lake.structure`` (cdc/source/notes/triggers.py); the same,
with what the lake made of it, is kept beside the lake's table. Columns are told apart by their
number, which Postgres never gives twice, and not by their name.
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

_NO_KEY: Final = "has neither a primary key nor REPLICA IDENTITY FULL any more"
_NOTHING: Final = "has REPLICA IDENTITY NOTHING: updates and deletes would not arrive"
_MISMATCH: Final = "its replica identity is an index without the columns of its primary key"


@dataclass(frozen=True, slots=True, kw_only=True)
class StructureColumn:
    """``lake`` is what the lake's column is: it may be wider than the source's type needs now."""

    number: int  # pg_attribute.attnum
    name: str
    lake: str  # Spark DDL text
    arrives: bool
    declared: DeclaredType
    pg: PgType
    missing: str | None = None
    """Postgres's text of the value that rows show which are older than the column."""
    has_default: bool = False
    """Where the table was rewritten, older rows hold it, each with a value of its own."""
    not_null: bool = False
    generated: bool = False
    labels: tuple[tuple[int, str], ...] = ()
    """Of the enums in its type: the OID of each value, and how it is spelled."""
    parts: str = ""
    """Of the composite types in its type: numbers and types of their attributes."""
    namesake: str = ""
    """Another type of the name of its own, for which the connector takes it."""
    left_out: bool = False
    """By ``source.schema_changes: ignore``: it would arrive, and the lake has no column for it."""

    @property
    def followed(self) -> bool:
        """Whether the lake has a column for it."""
        return self.arrives and not self.left_out

    @property
    def column(self) -> Column:
        chosen = self.lake == "string" and lake_type(self.pg).spark != "string"
        return Column(self.name, self.lake, as_text=chosen and can_be_text(self.pg))


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """``columns`` are all of them, also those that do not arrive."""

    oid: int
    table: TableId
    kind: str  # pg_class.relkind: r, p
    identity: str  # pg_class.relreplident: d, f, i, n
    primary_key: tuple[str, ...]
    identity_index: tuple[str, ...]
    filenode: int  # another one after every rewrite, and after TRUNCATE
    columns: tuple[StructureColumn, ...]

    @property
    def key(self) -> tuple[str, ...]:
        return self.primary_key or (self.identity_index if self.identity == "i" else ())

    @property
    def followed(self) -> tuple[StructureColumn, ...]:
        """The columns that the lake's table has, in the source's order."""
        return tuple(column for column in self.columns if column.followed)

    def numbered(self) -> dict[int, StructureColumn]:
        return {column.number: column for column in self.columns}

    def key_numbers(self) -> frozenset[int]:
        return frozenset(column.number for column in self.columns if column.name in self.key)

    def mode(self, *, append: bool) -> TableMode | str:
        """How its events become rows, or why they cannot."""
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
        """JSON that ``parse`` reads, the same for equal structures."""
        return json.dumps(_as_json(self), ensure_ascii=False, sort_keys=True)


def kept_as_text(structure: Structure, patterns: list[str]) -> Structure:
    """With the columns as text for which the operator chose so; before the lake has the table."""
    chosen = (
        replace(column, lake="string")
        if can_be_text(column.pg) and names_column(structure.table, column.name, patterns)
        else column
        for column in structure.columns
    )
    return replace(structure, columns=tuple(chosen))


def unpublished_from(text: str) -> str:
    """Return the publication that a note says its table has left; empty where it says none."""
    try:
        return str(json.loads(text).get("unpublished_from") or "")
    except (AttributeError, ValueError):
        return ""  # it is no note, and is refused as such by ``parse``


def parse(text: str) -> Structure:
    """From the source's note, the catalogue, or what ``to_text`` made of either.

    Raises BAD_EVENT for anything else, and where the source could not describe the table.
    """
    try:
        found = json.loads(text)
        if failure := found.get("failed"):
            raise CdcError(
                ErrorKind.BAD_EVENT,
                f"the source could not describe the structure of table {found['oid']}",
                detail=f"SQLSTATE {failure}",
                remedy="see the warning in the source's log; then wal2lake check",
            )
        return _structure(found)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CdcError(
            ErrorKind.BAD_EVENT,
            "a note of wal2lake.structure is not the structure of a table",
            detail=type(error).__name__,
            remedy="let nobody but wal2lake's event trigger write to that table",
        ) from None


def _structure(found: Mapping[str, Any]) -> Structure:
    return Structure(
        oid=int(found["oid"]),
        table=TableId(str(found["schema"]), str(found["table"])),
        kind=str(found["kind"]),
        identity=str(found["identity"]),
        primary_key=tuple(map(str, found["primary_key"])),
        identity_index=tuple(map(str, found["identity_index"])),
        filenode=int(found["filenode"]),
        columns=tuple(_column(each) for each in found["columns"]),
    )


def _column(found: Mapping[str, Any]) -> StructureColumn:
    declared = DeclaredType.of(found)
    known = source_column(
        found["name"], declared, not_null=found["not_null"], generated=found["generated"]
    )
    return StructureColumn(
        number=int(found["number"]),
        name=known.name,
        # What was kept wins: a later version may map a type otherwise.
        lake=found.get("lake", known.type),
        arrives=found.get("arrives", known.arrives),
        declared=declared,
        pg=known.pg,
        missing=found["missing"],
        has_default=found["default"],
        not_null=found["not_null"],
        generated=found["generated"],
        labels=tuple((int(oid), label) for oid, label in (found.get("labels") or {}).items()),
        parts=found["parts"],
        namesake=found.get("namesake") or "",
        left_out=found.get("left_out", False),
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
    }
