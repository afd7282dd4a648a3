"""Read the source's catalogue, and judge the tables that the configuration names.

``inspect`` judges every table, and ``check`` prints its findings; cdc/source/catalog/captured.py
chooses the tables to capture.
"""

import re
from dataclasses import dataclass, replace
from typing import Any, Final

from cdc.config import Config
from cdc.events.names import (
    RefusedName,
    case_twins,
    column_refusals,
    table_collisions,
    table_refusal,
)
from cdc.events.structure.declared import DeclaredType, SourceColumn, source_column
from cdc.source.catalog.identity import ReplicaIdentity, mode_of
from cdc.source.catalog.text_choice import text_findings, with_text
from cdc.source.catalog.type_names import misread_types
from cdc.source.server.connection import Connection, translated
from cdc.source.server.finding import Finding
from cdc.tables import CONTROL_SCHEMA, TableId, TableMode, matches

_WILD: Final = re.compile(r"[*?\[]")
_KINDS: Final = {
    "v": "a view",
    "m": "a materialized view",
    "f": "a foreign table",
    "p": "a partitioned table (name its partitions instead)",
}

# Not by pg_publication_tables: that takes a lock on every table of the publication, and a start
# would wait for whatever holds another on one of them.
_RELATIONS: Final = """
SELECT n.nspname, c.relname, c.oid, c.relkind, c.relpersistence, c.relreplident,
       c.relrowsecurity AND NOT (
           EXISTS (SELECT FROM pg_roles r WHERE r.rolname = current_user
                   AND (r.rolbypassrls OR r.rolsuper))
           OR NOT c.relforcerowsecurity AND pg_has_role(c.relowner, 'USAGE')),
       has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'),
       EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid),
       (SELECT array_agg(a.attname ORDER BY k.place)
          FROM pg_index x, unnest(x.indkey) WITH ORDINALITY k(number, place)
          JOIN pg_attribute a ON a.attnum = k.number
         WHERE x.indrelid = c.oid AND a.attrelid = c.oid AND x.indisprimary AND x.indimmediate
           AND k.place <= x.indnkeyatts),
       (SELECT array_agg(a.attname ORDER BY k.place)
          FROM pg_index x, unnest(x.indkey) WITH ORDINALITY k(number, place)
          JOIN pg_attribute a ON a.attnum = k.number
         WHERE x.indrelid = c.oid AND a.attrelid = c.oid AND x.indisreplident
           AND k.place <= x.indnkeyatts),
       EXISTS (SELECT FROM pg_publication p
                WHERE p.pubname = %s
                  AND (p.puballtables
                       OR EXISTS (SELECT FROM pg_publication_rel r
                                   WHERE r.prpubid = p.oid AND r.prrelid IN (
                                         SELECT c.oid UNION SELECT pg_partition_ancestors(c.oid)))
                       OR {of_schemas}))
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> 'information_schema'
   AND n.nspname !~ '^pg_' AND n.nspname <> %s
 ORDER BY 1, 2
"""

_OF_SCHEMAS: Final = """EXISTS (SELECT FROM pg_publication_namespace s
                                   WHERE s.pnpubid = p.oid AND s.pnnspid = n.oid)"""
_SCHEMAS_SINCE: Final = 150000  # the first server that publishes whole schemas

DECLARED: Final = {
    "type": "COALESCE(b.typname, t.typname)",
    "kind": "COALESCE(b.typtype, t.typtype)",
    "modifier": "CASE WHEN t.typtype = 'd' THEN b.modifier ELSE a.atttypmod END",
    "element": "COALESCE(e.typname, '')",
    "element_kind": "COALESCE(e.typtype::text, '')",
    "domain": "CASE WHEN t.typtype = 'd' THEN t.typname ELSE '' END",
    "dimensions": "a.attndims",
    "not_null": "a.attnotnull",
    "generated": "a.attgenerated <> ''",
}
"""The facts read about each column of ``ATTRIBUTES``, here and by the notes on DDL."""
ATTRIBUTES: Final = """pg_attribute a
  JOIN pg_type t ON t.oid = a.atttypid
  LEFT JOIN LATERAL (
       WITH RECURSIVE domains(oid, modifier) AS (
           SELECT t.typbasetype, t.typtypmod WHERE t.typtype = 'd'
           UNION ALL
           SELECT o.typbasetype, o.typtypmod
             FROM domains d JOIN pg_type o ON o.oid = d.oid AND o.typtype = 'd')
       SELECT o.*, d.modifier FROM domains d JOIN pg_type o ON o.oid = d.oid AND o.typtype <> 'd'
       ) b ON true
  LEFT JOIN pg_type e ON e.oid = COALESCE(b.typelem, t.typelem)
       AND COALESCE(b.typcategory, t.typcategory) = 'A'"""
_COLUMNS: Final = f"""
SELECT a.attrelid, a.attname, {", ".join(DECLARED.values())}
  FROM {ATTRIBUTES}
 WHERE a.attrelid = ANY(%s) AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attrelid, a.attnum
"""  # noqa: S608 - of constants


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTable:
    """A table of the source that is captured into the lake."""

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
        """Whether the connector must ignore the table, because it might not start otherwise."""
        return self.unfit is not None and self.oid != 0 and not self.in_publication


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """The tables that match the patterns, and what is wrong with them."""

    tables: tuple[SourceTable, ...]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Relation:
    table: TableId
    oid: int
    kind: str
    persistence: str
    row_security: bool
    readable: bool
    has_children: bool
    identity: ReplicaIdentity
    in_publication: bool


def inspect(connection: Connection, config: Config) -> Catalog:
    """Judge every table that matches the patterns of source.tables. Raises like ``translated``."""
    with translated("reading the catalogue"):
        rows = connection.execute(_relations(connection), (config.name, CONTROL_SCHEMA)).fetchall()
    relations = [_relation(row) for row in rows]
    named = [r for r in relations if matches(r.table, config.source.tables)]
    findings = _unmatched(config.source.tables, [r.table for r in relations])
    oids = [relation.oid for relation in named]
    by_oid = _columns(connection, oids)
    columns = with_text({r.table: by_oid.get(r.oid, ()) for r in named}, config.source.as_text)
    findings += _shared_names([relation for relation in named if relation.kind == "r"])
    findings += misread_types(connection, oids) + text_findings(columns, config.source.as_text)
    tables: list[SourceTable] = []
    for relation in named:
        judged = _judge(relation, columns[relation.table], config)
        findings += [replace(finding, table=relation.table) for finding in judged.findings]
        tables += judged.tables
    return Catalog(tables=tuple(tables), findings=tuple(findings))


def _relations(connection: Connection) -> bytes:
    of_schemas = connection.info.server_version >= _SCHEMAS_SINCE
    return _RELATIONS.format(of_schemas=_OF_SCHEMAS if of_schemas else "false").encode()


def _relation(row: tuple[Any, ...]) -> _Relation:
    schema, name, oid, kind, persistence, replica, rls, readable, *others = row
    children, key, index, in_publication = others
    return _Relation(
        table=TableId(schema, name),
        oid=oid,
        kind=kind,
        persistence=persistence,
        row_security=rls,
        readable=readable,
        has_children=children,
        identity=ReplicaIdentity(
            replica=replica, primary_key=tuple(key or ()), index=tuple(index or ())
        ),
        in_publication=in_publication,
    )


def _columns(connection: Connection, oids: list[int]) -> dict[int, tuple[SourceColumn, ...]]:
    columns: dict[int, list[SourceColumn]] = {}
    with translated("reading the catalogue"):
        rows = connection.execute(_COLUMNS.encode(), (oids,)).fetchall()
    for oid, name, *values in rows:
        facts = dict(zip(DECLARED, values, strict=True))
        column = source_column(
            name,
            DeclaredType.of(facts),
            not_null=facts["not_null"],
            generated=facts["generated"],
        )
        columns.setdefault(oid, []).append(column)
    return {oid: tuple(of_table) for oid, of_table in columns.items()}


def _unmatched(patterns: list[str], tables: list[TableId]) -> list[Finding]:
    return [
        Finding.error(
            pattern,
            "this pattern in source.tables matches no table that the role can see",
            remedy="correct the pattern, or create the table first; names are case-sensitive",
        )
        for pattern in patterns
        if not any(matches(table, [pattern]) for table in tables)
    ]


def _judge(relation: _Relation, columns: tuple[SourceColumn, ...], config: Config) -> Catalog:
    subject = str(relation.table)
    if relation.kind != "r":
        return _not_a_table(relation, config.source.tables)
    mode, findings = mode_of(
        subject,
        relation.identity,
        append=matches(relation.table, config.source.append_only),
    )
    findings = [*_unfit(relation), *_bad_names(relation.table, columns), *findings]
    key = relation.identity.key if mode is TableMode.KEYED else ()
    findings += _column_findings(subject, columns, key)
    if not key:  # the columns of a key are judged one by one
        findings += _without_columns(subject, columns)
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


def _not_a_table(relation: _Relation, patterns: list[str]) -> Catalog:
    """Warn about a relation that a wildcard matches, refuse one that is named literally."""
    subject = str(relation.table)
    named = any(pattern == subject and not _WILD.search(pattern) for pattern in patterns)
    message = f"is {_KINDS[relation.kind]}: the WAL holds no changes under its name"
    make = Finding.error if named else Finding.warning
    return Catalog(
        tables=(), findings=(make(subject, message, remedy="remove it from source.tables"),)
    )


def _unfit(relation: _Relation) -> list[Finding]:
    subject = str(relation.table)
    findings = []
    if relation.persistence != "p":
        findings.append(
            Finding.error(
                subject,
                "is unlogged or temporary: its changes are not in the WAL",
                remedy=f"ALTER TABLE {subject} SET LOGGED, or remove it from source.tables",
            )
        )
    if not relation.readable:
        findings.append(
            Finding.error(
                subject, "the role may not read it", remedy=f"GRANT SELECT ON {subject} to the role"
            )
        )
    if relation.row_security:
        findings.append(
            Finding.error(
                subject,
                "row security applies to the role, so the snapshot would miss rows",
                remedy="ALTER ROLE ... BYPASSRLS, or connect as the table's owner",
            )
        )
    return findings


def _bad_names(table: TableId, columns: tuple[SourceColumn, ...]) -> list[Finding]:
    """Refuse names that Kafka, Avro, Spark or Delta reject, or that would collide there."""
    of_table = table_refusal(table)
    of_columns = column_refusals(table, [column.name for column in columns])
    refusals = [*([of_table] if of_table else []), *of_columns]
    return [_refused(refusal) for refusal in refusals]


def _refused(refusal: RefusedName) -> Finding:
    finding = Finding.error(str(refusal.table), refusal.reason, remedy=refusal.remedy)
    return replace(finding, table=refusal.table)


def _shared_names(relations: list[_Relation]) -> list[Finding]:
    """Report tables whose names collide; the finding names the table created later."""
    by_age = sorted(relations, key=lambda relation: relation.oid)
    tables = [relation.table for relation in by_age]
    refused = [replace(_refused(refusal), of_new=True) for refusal in table_collisions(tables)]
    twins = [
        Finding.warning(
            str(later),
            f"its name differs from {earlier} only in case: Spark's catalogue, and disks that "
            "ignore case, take them for one table",
            remedy="rename one of them if you use such a catalogue or disk",
        )
        for earlier, later in case_twins(tables)
    ]
    return refused + twins


def _without_columns(subject: str, columns: tuple[SourceColumn, ...]) -> list[Finding]:
    """Refuse a table without columns, or without any that can be captured.

    The first kind makes the connector fail. Of the second kind the lake would never have a row.
    """
    if any(column.arrives for column in columns):
        return []
    lack = "no column that can be captured" if columns else "no columns"
    return [
        Finding.error(
            subject,
            f"has {lack}",
            remedy="remove it from source.tables, or add a column to it",
        )
    ]


def _column_findings(
    subject: str, columns: tuple[SourceColumn, ...], key: tuple[str, ...]
) -> list[Finding]:
    findings = []
    for column in columns:
        name = f"{subject}.{column.name}"
        if not column.arrives and column.name in key:
            findings.append(
                Finding.error(
                    name,
                    f"is part of the key and will not arrive: {column.reason}",
                    remedy="choose another key, or remove the table from source.tables",
                )
            )
        elif not column.arrives:
            findings.append(Finding.warning(name, f"will not arrive: {column.reason}"))
        elif column.reason:
            findings.append(Finding.warning(name, f"arrives, but {column.reason}"))
    return findings
