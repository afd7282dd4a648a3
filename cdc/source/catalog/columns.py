"""Read the columns of tables from the source's catalogue."""

from dataclasses import replace
from typing import Final

from cdc.events.structure.declared import DeclaredType, SourceColumn, source_column
from cdc.source.server.connection import Connection, translated

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
SELECT a.attrelid, a.attname, a.attnum, {", ".join(DECLARED.values())}
  FROM {ATTRIBUTES}
 WHERE a.attrelid = ANY(%s) AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attrelid, a.attnum
"""  # noqa: S608 - of constants


def columns_of(connection: Connection, oids: list[int]) -> dict[int, tuple[SourceColumn, ...]]:
    """Return the columns of each table by its OID, in their order. Raises like ``translated``."""
    columns: dict[int, list[SourceColumn]] = {}
    with translated("reading the catalogue"):
        rows = connection.execute(_COLUMNS.encode(), (oids,)).fetchall()
    for oid, name, number, *values in rows:
        facts = dict(zip(DECLARED, values, strict=True))
        column = source_column(
            name,
            DeclaredType.of(facts),
            not_null=facts["not_null"],
            generated=facts["generated"],
        )
        columns.setdefault(oid, []).append(replace(column, number=number))
    return {oid: tuple(of_table) for oid, of_table in columns.items()}
