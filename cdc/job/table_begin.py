"""Find the structure that a table begins with: its log's first, else the source's columns."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from cdc.apply.table.structure_notes import first_notes, notes_in_log
from cdc.config import Config
from cdc.events.schema import Column, TableSchema
from cdc.events.structure.structure import Structure, parse
from cdc.kafka.registry_client import SchemaLookup
from cdc.lake.layout import log_path
from cdc.source.catalog.catalog import SourceTable


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """Gives the source's structure that a table's log begins with; ``note`` is its note's id."""

    note: int
    structure: Structure


def beginnings(
    config: Config,
    notes_topic: str,
    schemas: SchemaLookup,
    noted: Mapping[int, tuple[int, str]],
) -> dict[int, Beginning]:
    """Return what each table begins with, by OID: as the log says, else as the source ``noted``."""
    landed = notes_in_log(log_path(config), notes_topic, schemas)
    begins = {
        oid: Beginning(note=number, structure=parse(text)) for oid, (number, text) in noted.items()
    }
    for oid, first in first_notes(landed).items():
        if first.note is not None and first.note.structure is not None:
            begins[oid] = Beginning(note=first.id, structure=first.note.structure)
    return begins


def schema_of(source: SourceTable) -> TableSchema:
    """Return the lake's schema for a table of the source: the columns that arrive in events."""
    return TableSchema(
        table=source.table,
        columns=tuple(
            Column(column.name, column.type, nullable=not column.not_null, as_text=column.is_text)
            for column in source.columns
            if column.arrives
        ),
        key=source.key,
        mode=source.mode,
    )


def schema_at_begin(wanted: TableSchema, first: Structure | None) -> TableSchema:
    """Return the schema that the table has at the beginning of its log."""
    if first is None:
        return wanted
    columns = tuple(column.column for column in first.followed)
    return replace(wanted, columns=columns, key=first.key)
