"""Derives from the source's description of a table what the lake's table has to become."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.structure_notes import PlacedNote
from cdc.config import Config, masks_of
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import TableSchema
from cdc.events.structure.declared import SourceColumn
from cdc.events.structure.masked import masked
from cdc.events.structure.structure import Structure, kept_as_text, parse
from cdc.lake.table.positions import UNREAD
from cdc.tables import TableId, TableMode, matches


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Describes what the lake's table has to become."""

    structure: Structure
    schema: TableSchema
    same: bool  # whether the lake's table has these columns and this key already

    @property
    def columns(self) -> list[SourceColumn]:
        """Return the columns that the lake has, as the source is to be asked for them."""
        return [
            SourceColumn(
                name=c.name, type=c.lake, pg=c.pg, not_null=c.not_null, arrives=True, mask=c.mask
            )
            for c in self.structure.followed
        ]


def target_of(config: Config, live: AppliedTable, text: str) -> Target:
    """Return the target for a description ``text`` of the source's table.

    Raises SOURCE_NOT_READY for a table that the lake cannot keep.
    """
    table = live.schema.table
    described = masked(parse(text), masks_of(config.source))
    source = kept_as_text(described, config.source.as_text)
    if live.structure is not None and _same_columns(live.structure, source):
        # The lake's types may be wider than the source's types need now.
        source = replace(source, columns=live.structure.columns)
    elif config.source.schema_policy(table) == "ignore" and live.structure is not None:
        source = _without_new(source, live.structure)
    schema = _schema(config, table, source)
    same = (
        live.structure is not None
        and live.structure.oid == source.oid
        and _masks(live.structure) == _masks(source)
        and _alike(schema, live)
    )
    return Target(structure=source, schema=live.schema if same else schema, same=same)


def refuse_in_part(target: Target, live: AppliedTable) -> None:
    """Raise CONFLICT if some of the rows cannot be read without the others."""
    if not target.same or live.stopped or live.position.reading == UNREAD:
        raise CdcError(
            ErrorKind.CONFLICT,
            f"{live.schema.table} cannot be read in part: the lake's table is stopped, waits to be "
            "read, or has other columns",
            remedy=f"wal2lake resnapshot {live.schema.table}, without a predicate",
        )


def newest_note(notes: Iterable[PlacedNote], structure: Structure, least: int) -> int:
    """Return the id of the last note about the structure's table, at least ``least``."""
    ids = (n.id for n in notes if n.oid == structure.oid or n.table == structure.table)
    return max((least, *ids))


def _schema(config: Config, table: TableId, source: Structure) -> TableSchema:
    mode = source.mode(append=matches(table, config.source.append_only))
    if not isinstance(mode, TableMode):
        raise CdcError(
            ErrorKind.SOURCE_NOT_READY, f"{table}: {mode}", remedy="wal2lake check says what to do"
        )
    return TableSchema(
        table=table,
        columns=tuple(column.column for column in source.followed),
        key=source.key if mode is TableMode.KEYED else (),
        mode=mode,
    )


def _same_columns(lake: Structure, source: Structure) -> bool:
    return lake.oid == source.oid and [
        (c.number, c.name, c.declared, c.labels, c.parts, c.mask) for c in lake.columns
    ] == [(c.number, c.name, c.declared, c.labels, c.parts, c.mask) for c in source.columns]


def _masks(structure: Structure) -> dict[str, str]:
    return {column.name: column.mask for column in structure.followed}


def _without_new(source: Structure, lake: Structure) -> Structure:
    """Leave out columns that the lake does not have, as the policy ``ignore`` demands."""
    followed = {column.number for column in lake.followed}
    columns = tuple(
        replace(column, left_out=column.left_out or column.number not in followed)
        for column in source.columns
    )
    return replace(source, columns=columns)


def _alike(schema: TableSchema, live: AppliedTable) -> bool:
    """Compare columns, key and mode; the order of columns differs where one was added later."""
    wanted, current = ({c.name: c.type for c in s.columns} for s in (schema, live.schema))
    return wanted == current and (schema.key, schema.mode) == (live.schema.key, live.schema.mode)
