"""Read the source's catalogue, and judge the tables that the configuration names.

``inspect`` judges every table, and ``check`` prints its findings; cdc/source/catalog/captured.py
chooses the tables to capture.
"""

from dataclasses import dataclass, replace

from cdc.config import Config, masks_of
from cdc.events.structure.declared import SourceColumn
from cdc.source.catalog.columns import columns_of
from cdc.source.catalog.identity import mode_of
from cdc.source.catalog.masked_columns import mask_findings, unmatched_masks, with_masks
from cdc.source.catalog.pg_class import Relation, relations_of
from cdc.source.catalog.table_findings import (
    bad_names,
    column_findings,
    not_a_table,
    shared_names,
    unfit,
    unmatched,
    without_columns,
)
from cdc.source.catalog.text_choice import text_findings, with_text
from cdc.source.catalog.type_names import misread_types
from cdc.source.server.connection import Connection
from cdc.source.server.finding import Finding
from cdc.tables import TableId, TableMode, matches


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """Describes a table of the source that is captured into the lake."""

    table: TableId
    oid: int  # 0 if the source no longer has it
    columns: tuple[SourceColumn, ...]
    key: tuple[str, ...]
    mode: TableMode
    replica_identity: str  # pg_class.relreplident: d, f, i, n
    has_children: bool = False  # other tables inherit from it
    unfit: Finding | None = None
    """Why a table that was captured before cannot be followed now; None if it can."""
    in_publication: bool = True

    @property
    def passed_over(self) -> bool:
        """Return whether the connector must ignore the table, as it might not start otherwise."""
        return self.unfit is not None and self.oid != 0 and not self.in_publication


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Holds the tables that match the patterns, and what is wrong with them."""

    tables: tuple[SourceTable, ...]
    findings: tuple[Finding, ...]


def inspect(connection: Connection, config: Config) -> Catalog:
    """Judge every table that matches the patterns of source.tables. Raises like ``translated``."""
    relations = relations_of(connection, config.name)
    named = [r for r in relations if matches(r.table, config.source.tables)]
    findings = unmatched(config.source.tables, [r.table for r in relations])
    oids = [relation.oid for relation in named]
    by_oid = columns_of(connection, oids)
    columns = with_text({r.table: by_oid.get(r.oid, ()) for r in named}, config.source.as_text)
    masks = masks_of(config.source)
    columns = with_masks(columns, masks)
    findings += shared_names([relation for relation in named if relation.kind == "r"])
    findings += misread_types(connection, oids) + text_findings(columns, config.source.as_text)
    findings += unmatched_masks(columns, masks)
    tables: list[SourceTable] = []
    for relation in named:
        judged = _judge(relation, columns[relation.table], config)
        findings += [replace(finding, table=relation.table) for finding in judged.findings]
        tables += judged.tables
    return Catalog(tables=tuple(tables), findings=tuple(findings))


def _identity(relation: Relation) -> set[str]:
    return {*relation.identity.primary_key, *relation.identity.index}


def _judge(relation: Relation, columns: tuple[SourceColumn, ...], config: Config) -> Catalog:
    subject = str(relation.table)
    if relation.kind != "r":
        finding = not_a_table(relation, config.source.tables)
        return Catalog(tables=(), findings=(finding,))
    mode, findings = mode_of(
        subject,
        relation.identity,
        append=matches(relation.table, config.source.append_only),
    )
    findings = [*unfit(relation), *bad_names(relation.table, columns), *findings]
    key = relation.identity.key if mode is TableMode.KEYED else ()
    findings += mask_findings(subject, columns, _identity(relation))
    findings += column_findings(subject, columns, key)
    if not key:  # the columns of a key are judged one by one
        findings += without_columns(subject, columns)
    table = SourceTable(
        table=relation.table,
        oid=relation.oid,
        columns=columns,
        key=key,
        mode=mode,
        replica_identity=relation.identity.replica,
        has_children=relation.has_children,
        in_publication=relation.in_publication,
    )
    return Catalog(tables=(table,), findings=tuple(findings))
