"""What the source's catalogue says of the tables that the configuration names.

``inspect`` judges every table and is what ``check`` prints; cdc/source/captured.py says which of
them are kept.
"""

import re
from dataclasses import dataclass, replace
from typing import Any, Final

from cdc.config import Config
from cdc.events.names import (
    Refusal,
    case_twins,
    column_refusals,
    table_collisions,
    table_refusal,
)
from cdc.source.columns import DeclaredType, SourceColumn, source_column
from cdc.source.finding import Finding
from cdc.source.identity import Identity, mode_of
from cdc.source.postgres import Connection, translated
from cdc.source.text_choice import text_findings, with_text
from cdc.source.type_names import misread
from cdc.tables import CONTROL_SCHEMA, TableId, TableMode, matches

_WILD: Final = re.compile(r"[*?\[]")
_KINDS: Final = {
    "v": "a view",
    "m": "a materialized view",
    "f": "a foreign table",
    "p": "a partitioned table: name its partitions",
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
"""What is asked of a column of ``ATTRIBUTES``, here and by the notes of changes."""
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
    """A table of the source that is kept equal in the lake."""

    table: TableId
    oid: int  # 0: the source has it no more
    columns: tuple[SourceColumn, ...]
    key: tuple[str, ...]
    mode: TableMode
    replica_identity: str  # pg_class.relreplident: d, f, i, n
    has_children: bool = False  # others inherit from it
    unfit: Finding | None = None
    """What keeps one from being followed that was fit when its first snapshot was taken."""
    published: bool = True

    @property
    def passed_over(self) -> bool:
        """Whether the connector is kept from it: it may be unable to start beside it."""
        return self.unfit is not None and self.oid != 0 and not self.published


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
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
    identity: Identity
    published: bool


def inspect(connection: Connection, config: Config) -> Catalog:
    """Every table the patterns name, judged."""
    with translated("reading the catalogue"):
        rows = connection.execute(_relations(connection), (config.name, CONTROL_SCHEMA)).fetchall()
    relations = [_relation(row) for row in rows]
    named = [r for r in relations if matches(r.table, config.source.tables)]
    findings = _unmatched(config.source.tables, [r.table for r in relations])
    oids = [relation.oid for relation in named]
    known = _columns(connection, oids)
    columns = with_text({r.table: known.get(r.oid, ()) for r in named}, config.source.as_text)
    findings += _shared_names([relation for relation in named if relation.kind == "r"])
    findings += misread(connection, oids) + text_findings(columns, config.source.as_text)
    tables: list[SourceTable] = []
    for relation in named:
        judged = _judge(relation, columns[relation.table], config)
        findings += [replace(found, table=relation.table) for found in judged.findings]
        tables += judged.tables
    return Catalog(tables=tuple(tables), findings=tuple(findings))


def _relations(connection: Connection) -> bytes:
    of_schemas = connection.info.server_version >= _SCHEMAS_SINCE
    return _RELATIONS.format(of_schemas=_OF_SCHEMAS if of_schemas else "false").encode()


def _relation(row: tuple[Any, ...]) -> _Relation:
    schema, name, oid, kind, persistence, replica, rls, readable, *others = row
    children, key, index, published = others
    return _Relation(
        table=TableId(schema, name),
        oid=oid,
        kind=kind,
        persistence=persistence,
        row_security=rls,
        readable=readable,
        has_children=children,
        identity=Identity(replica=replica, primary_key=tuple(key or ()), index=tuple(index or ())),
        published=published,
    )


def _columns(connection: Connection, oids: list[int]) -> dict[int, tuple[SourceColumn, ...]]:
    found: dict[int, list[SourceColumn]] = {}
    with translated("reading the catalogue"):
        rows = connection.execute(_COLUMNS.encode(), (oids,)).fetchall()
    for oid, name, *values in rows:
        said = dict(zip(DECLARED, values, strict=True))
        declared = DeclaredType(
            name=said["type"],
            kind=said["kind"],
            modifier=said["modifier"],
            element=said["element"],
            element_kind=said["element_kind"],
            domain=said["domain"],
            dimensions=said["dimensions"],
        )
        column = source_column(
            name, declared, not_null=said["not_null"], generated=said["generated"]
        )
        found.setdefault(oid, []).append(column)
    return {oid: tuple(columns) for oid, columns in found.items()}


def _unmatched(patterns: list[str], tables: list[TableId]) -> list[Finding]:
    return [
        Finding.error(
            pattern,
            "this pattern of source.tables names no table that the role can see",
            remedy="correct it, or create the table first; names are case-sensitive",
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
    if not key:  # whose columns are told one by one
        findings += _without_columns(subject, columns)
    table = SourceTable(
        table=relation.table,
        oid=relation.oid,
        columns=columns,
        key=key,
        mode=mode,
        replica_identity=relation.identity.replica,
        has_children=relation.has_children,
        published=relation.published,
    )
    return Catalog(tables=(table,), findings=tuple(findings))


def _not_a_table(relation: _Relation, patterns: list[str]) -> Catalog:
    """A view among ``public.*`` is passed over, one that is named is an error."""
    subject = str(relation.table)
    named = any(pattern == subject and not _WILD.search(pattern) for pattern in patterns)
    message = f"is {_KINDS[relation.kind]}, which has no changes of its own in the WAL"
    make = Finding.error if named else Finding.warning
    return Catalog(
        tables=(), findings=(make(subject, message, remedy="take it out of source.tables"),)
    )


def _unfit(relation: _Relation) -> list[Finding]:
    subject = str(relation.table)
    found = []
    if relation.persistence != "p":
        found.append(
            Finding.error(
                subject,
                "is unlogged or temporary: its changes are not in the WAL",
                remedy=f"ALTER TABLE {subject} SET LOGGED, or take it out of source.tables",
            )
        )
    if not relation.readable:
        found.append(
            Finding.error(subject, "the role may not read it", remedy=f"GRANT SELECT ON {subject}")
        )
    if relation.row_security:
        found.append(
            Finding.error(
                subject,
                "row security applies to the role: the snapshot would miss rows",
                remedy="ALTER ROLE ... BYPASSRLS, or use the table's owner",
            )
        )
    return found


def _bad_names(table: TableId, columns: tuple[SourceColumn, ...]) -> list[Finding]:
    """Names that Kafka, Avro, Spark or Delta do not take, or that two things would share there."""
    of_table = table_refusal(table)
    of_columns = column_refusals(table, [column.name for column in columns])
    return [_refused(found) for found in (*([of_table] if of_table else []), *of_columns)]


def _refused(refusal: Refusal) -> Finding:
    found = Finding.error(str(refusal.table), refusal.reason, remedy=refusal.remedy)
    return replace(found, table=refusal.table)


def _shared_names(relations: list[_Relation]) -> list[Finding]:
    """Of tables that get in each other's way; the one that was made later is named."""
    tables = [relation.table for relation in sorted(relations, key=lambda each: each.oid)]
    refused = [replace(_refused(each), of_new=True) for each in table_collisions(tables)]
    twins = [
        Finding.warning(
            str(later),
            f"is called like {earlier} but for case: it is another table in the lake, and one with "
            "it for Spark's catalogue and on a disk that ignores case",
            remedy="rename one of them where that matters",
        )
        for earlier, later in case_twins(tables)
    ]
    return refused + twins


def _without_columns(subject: str, columns: tuple[SourceColumn, ...]) -> list[Finding]:
    """Refuse a table without a column, which ends the connector, and one of which none arrives.

    Of the second the lake would have no row, while the source has some.
    """
    if any(column.arrives for column in columns):
        return []
    why = "no column that arrives" if columns else "no columns"
    return [
        Finding.error(
            subject,
            f"has {why}: there is nothing of it to keep",
            remedy="take it out of source.tables, or give it a column",
        )
    ]


def _column_findings(
    subject: str, columns: tuple[SourceColumn, ...], key: tuple[str, ...]
) -> list[Finding]:
    found = []
    for column in columns:
        name = f"{subject}.{column.name}"
        if not column.arrives and column.name in key:
            found.append(
                Finding.error(
                    name,
                    f"is part of the key and will not arrive: {column.reason}",
                    remedy="choose another key, or leave the table out",
                )
            )
        elif not column.arrives:
            found.append(Finding.warning(name, f"will not arrive: {column.reason}"))
        elif column.reason:
            found.append(Finding.warning(name, f"arrives, but {column.reason}"))
    return found
