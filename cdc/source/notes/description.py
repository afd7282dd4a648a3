"""Holds the SQL that describes a table's structure as JSON, as a query and as a function."""

# ruff: noqa: S608 - every part of a statement is a constant of ours
from typing import Final

from cdc.events.values.sql_text import postgres_string
from cdc.source.catalog.columns import ATTRIBUTES, DECLARED
from cdc.source.server.printing import PRINTING
from cdc.tables import CONTROL_SCHEMA

SPELLING: Final = {"search_path": "pg_catalog, pg_temp", **PRINTING}
"""Settings that give each value one spelling, whoever alters the table."""

_KEY: Final = """COALESCE((
        SELECT json_agg(a.attname ORDER BY k.place)
          FROM pg_index x, unnest(x.indkey) WITH ORDINALITY k(number, place)
          JOIN pg_attribute a ON a.attnum = k.number
         WHERE x.indrelid = c.oid AND a.attrelid = c.oid AND k.place <= x.indnkeyatts
           AND {kind}), '[]')"""
_DECLARED: Final = ",\n            ".join(
    f"{postgres_string(name)}, {text}" for name, text in DECLARED.items()
)

_INSIDE: Final = """
      WITH RECURSIVE inside(oid) AS (  -- a type of the server's own is made of none of the user's
          SELECT a.atttypid WHERE a.atttypid >= 16384
          UNION
          SELECT o.oid FROM inside d JOIN pg_type p ON p.oid = d.oid CROSS JOIN LATERAL (
              VALUES (p.typbasetype), (p.typelem)
              UNION ALL SELECT r.rngsubtype FROM pg_range r
               WHERE p.oid IN (r.rngtypid, r.rngmultitypid)
              UNION ALL SELECT s.atttypid FROM pg_attribute s
               WHERE s.attrelid = p.typrelid AND s.attnum > 0 AND NOT s.attisdropped) o(oid)
           WHERE o.oid <> 0)
      SELECT (SELECT json_object_agg(l.oid, l.enumlabel ORDER BY l.enumtypid, l.enumsortorder)
                FROM inside d JOIN pg_enum l ON l.enumtypid = d.oid),
             (SELECT string_agg(concat_ws(':', s.attrelid, s.attnum, s.atttypid, s.atttypmod), ' '
                                ORDER BY s.attrelid, s.attnum)
                FROM inside d JOIN pg_type p ON p.oid = d.oid
                JOIN pg_attribute s ON s.attrelid = p.typrelid AND s.attnum > 0
                     AND NOT s.attisdropped)"""
"""For a column: the labels of all enums and the parts of all composite types in its type."""

_NAMESAKE: Final = """
                SELECT concat('pg_catalog.', o.typname) FROM pg_type y
                  JOIN pg_type o ON o.typname = y.typname AND o.oid <> y.oid
                       AND o.typnamespace = 'pg_catalog'::regnamespace
                 WHERE y.oid = ANY (ARRAY[t.oid, CASE WHEN t.typcategory = 'A' THEN t.typelem END])
                 ORDER BY y.oid = t.oid LIMIT 1"""
"""For a column: the built-in type of the same name as its type; the connector goes by the name."""

_DESCRIPTION: Final = f"""\
SELECT json_build_object(
    'oid', c.oid::bigint, 'schema', n.nspname, 'table', c.relname, 'kind', c.relkind,
    'identity', c.relreplident, 'filenode', c.relfilenode::bigint,
    'primary_key', {_KEY.format(kind="x.indisprimary AND x.indimmediate")},
    'identity_index', {_KEY.format(kind="x.indisreplident")},
    'columns', COALESCE((
        SELECT json_agg(json_build_object(
            'number', a.attnum, 'name', a.attname,
            {_DECLARED},
            'missing', (a.attmissingval::text::text[])[1],
            'namesake', ({_NAMESAKE}),
            'default', a.attgenerated = '' AND (
                a.atthasdef OR a.attidentity <> '' OR t.typdefault IS NOT NULL),
            'labels', i.labels, 'parts', COALESCE(i.parts, ''))
            ORDER BY a.attnum)
  FROM {ATTRIBUTES}
  CROSS JOIN LATERAL ({_INSIDE}
  ) i(labels, parts)
 WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), '[]'))::text
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p') AND c.oid = """
DESCRIPTION: Final = f"{_DESCRIPTION}%s"
"""A query for a table as JSON, by its OID; it returns no row if there is no such table."""
_SETTINGS: Final = "\n".join(f"    SET {name} = {value}" for name, value in SPELLING.items())

DESCRIBE: Final = f"""\
CREATE OR REPLACE FUNCTION {CONTROL_SCHEMA}.describe(relation oid) RETURNS text
    LANGUAGE plpgsql STABLE
{_SETTINGS.replace("ISO, YMD", "'ISO, YMD'")}
AS $body$
BEGIN
    RETURN ({_DESCRIPTION}relation);
END
$body$"""
