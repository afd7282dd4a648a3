"""A table as the source describes it at one moment: what the lake's table is to be."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.structure_notes import PlacedNote
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import TableSchema
from cdc.events.structure.declared import SourceColumn
from cdc.events.structure.structure import Structure, kept_as_text, parse
from cdc.tables import TableId, TableMode, matches


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """``same``: the lake's table has these columns and this key already."""

    structure: Structure
    schema: TableSchema
    same: bool

    @property
    def columns(self) -> list[SourceColumn]:
        """Those the lake has, as they are to be read."""
        return [
            SourceColumn(name=c.name, type=c.lake, pg=c.pg, not_null=c.not_null, arrives=True)
            for c in self.structure.followed
        ]


def described(config: Config, live: AppliedTable, text: str) -> Described:
    """From the source's description; raises SOURCE_NOT_READY for a table that cannot be kept."""
    table = live.schema.table
    found = kept_as_text(parse(text), config.source.as_text)
    if live.structure is not None and _same_columns(live.structure, found):
        # What the lake has may be wider than the source's types need now.
        found = replace(found, columns=live.structure.columns)
    elif config.source.schema_policy(table) == "ignore" and live.structure is not None:
        found = _without_new(found, live.structure)
    schema = _schema(config, table, found)
    same = live.structure is not None and live.structure.oid == found.oid and _alike(schema, live)
    return Described(structure=found, schema=live.schema if same else schema, same=same)


def newest_note(notes: Iterable[PlacedNote], structure: Structure, least: int) -> int:
    """The id of the last note that the structure has followed, ``least`` where there is none."""
    mine = (n.id for n in notes if n.oid == structure.oid or n.table == structure.table)
    return max((least, *mine))


def _schema(config: Config, table: TableId, found: Structure) -> TableSchema:
    mode = found.mode(append=matches(table, config.source.append_only))
    if not isinstance(mode, TableMode):
        raise CdcError(
            ErrorKind.SOURCE_NOT_READY, f"{table}: {mode}", remedy="wal2lake check says what to do"
        )
    return TableSchema(
        table=table,
        columns=tuple(column.column for column in found.followed),
        key=found.key if mode is TableMode.KEYED else (),
        mode=mode,
    )


def _same_columns(known: Structure, found: Structure) -> bool:
    return known.oid == found.oid and [
        (c.number, c.name, c.declared, c.labels, c.parts) for c in known.columns
    ] == [(c.number, c.name, c.declared, c.labels, c.parts) for c in found.columns]


def _without_new(found: Structure, known: Structure) -> Structure:
    """By the policy ``ignore``: columns that the lake has none for stay left out."""
    kept = {column.number for column in known.followed}
    columns = tuple(
        replace(column, left_out=column.left_out or column.number not in kept)
        for column in found.columns
    )
    return replace(found, columns=columns)


def _alike(schema: TableSchema, live: AppliedTable) -> bool:
    """The order of the columns is another where one was added later."""
    found, known = ({c.name: c.type for c in s.columns} for s in (schema, live.schema))
    return found == known and (schema.key, schema.mode) == (live.schema.key, live.schema.mode)
