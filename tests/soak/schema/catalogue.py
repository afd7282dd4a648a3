"""Read the facts of any database from its catalogue."""

from collections.abc import Iterator
from typing import Any, Final

import psycopg

from tests.soak.schema.facts import OURS, Column, Database, Reference, Table, identifier

Connection = psycopg.Connection[tuple[Any, ...]]

_MINE: Final = f"""
  n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', 'wal2lake')
  AND NOT starts_with(c.relname, '{OURS}')"""
_TABLES: Final = f"""
SELECT c.oid, n.nspname, c.relname, c.relkind = 'p',
       EXISTS (SELECT FROM pg_constraint f WHERE f.contype = 'f' AND f.confrelid = c.oid
               AND f.conrelid <> c.oid),
       (SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_index x
          JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY(x.indkey)
         WHERE x.indrelid = c.oid AND x.indisprimary),
       (SELECT array_agg(DISTINCT a.attname::text) FROM pg_index x
          JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY(x.indkey)
         WHERE x.indrelid = c.oid AND x.indisunique),
       (SELECT y.typname FROM pg_partitioned_table p
          JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = p.partattrs[0]
          JOIN pg_type y ON y.oid = a.atttypid
         WHERE p.partrelid = c.oid AND p.partstrat = 'r' AND p.partnatts = 1),
       (SELECT format('%I.%I', m.nspname, o.relname) FROM pg_inherits i
          JOIN pg_class o ON o.oid = i.inhparent JOIN pg_namespace m ON m.oid = o.relnamespace
         WHERE i.inhrelid = c.oid AND c.relispartition),
       pg_get_expr(c.relpartbound, c.oid),
       (SELECT array_agg(format('%I.%I', n.nspname, o.relname)) FROM pg_index x
          JOIN pg_class o ON o.oid = x.indexrelid
         WHERE x.indrelid = c.oid AND starts_with(o.relname, '{OURS}')
           AND NOT o.relispartition)
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p' AND {_MINE}
 ORDER BY 2, 3"""
_BASE: Final = """LATERAL (
    WITH RECURSIVE down(oid, typmod) AS (
        SELECT a.atttypid, a.atttypmod
        UNION ALL
        SELECT y.typbasetype, y.typtypmod FROM down d JOIN pg_type y
            ON y.oid = d.oid AND y.typtype = 'd')
    SELECT y.*, d.typmod FROM down d JOIN pg_type y ON y.oid = d.oid AND y.typtype <> 'd') b"""
_COLUMNS: Final = f"""
SELECT a.attname, format_type(a.atttypid, a.atttypmod), b.typname, coalesce(e.typname, ''),
       b.typmod, b.oid <> a.atttypid,
       coalesce((SELECT array_agg(l.enumlabel::text ORDER BY l.enumsortorder) FROM pg_enum l
         WHERE l.enumtypid IN (b.oid, e.oid)), '{{}}'),
       a.attnotnull, a.attgenerated <> '' OR a.attidentity = 'a', a.atthasdef,
       a.attidentity <> '' OR coalesce(pg_get_expr(g.adbin, a.attrelid) ~ 'nextval', false),
       f.target, f.name
  FROM pg_attribute a CROSS JOIN {_BASE}
  LEFT JOIN pg_type e ON e.oid = b.typelem AND b.typcategory = 'A'
  LEFT JOIN pg_attrdef g ON g.adrelid = a.attrelid AND g.adnum = a.attnum
  LEFT JOIN LATERAL (
       SELECT k.confrelid AS target, t.attname AS name FROM pg_constraint k
         JOIN pg_attribute t ON t.attrelid = k.confrelid
              AND t.attnum = k.confkey[array_position(k.conkey, a.attnum)]
        WHERE k.contype = 'f' AND k.conrelid = a.attrelid AND a.attnum = ANY(k.conkey)
        ORDER BY k.oid LIMIT 1) f ON true
 WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""
_NAMES: Final = (
    "name",
    "type",
    "base",
    "element",
    "modifier",
    "domain",
    "labels",
    "not_null",
    "generated",
    "default",
    "sequence",
    "target",
    "led_to",
)
"""The names of the columns that ``_COLUMNS`` selects."""
_OWN_TYPES: Final = """
SELECT format_type(t.oid, NULL),
       coalesce((SELECT array_agg(l.enumlabel::text ORDER BY l.enumsortorder) FROM pg_enum l
                  WHERE l.enumtypid = t.oid), '{}')
  FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
 WHERE (t.typtype = 'e' OR t.typtype = 'd' AND NOT t.typnotnull) AND n.nspname !~ '^pg_'
   AND n.nspname NOT IN ('information_schema', 'wal2lake') ORDER BY 1"""

_Rows = dict[int, tuple[str, int]]


def read(connection: Connection) -> Database:
    """Return everything that may be changed: the tables of all user schemas."""
    found = connection.execute(_TABLES.encode()).fetchall()
    rows = {row[0]: (_quoted(row), _rows(connection, _quoted(row))) for row in found}
    own = connection.execute(_OWN_TYPES.encode()).fetchall()
    return Database(
        tables=tuple(_table(connection, row, rows) for row in found),
        own_types=tuple((name, tuple(labels)) for name, labels in own),
    )


def _quoted(row: tuple[Any, ...]) -> str:
    return f"{identifier(row[1])}.{identifier(row[2])}"


def _rows(connection: Connection, quoted: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM {quoted}".encode()).fetchone()
    assert row is not None
    return int(row[0])


def _table(connection: Connection, row: tuple[Any, ...], rows: _Rows) -> Table:
    oid, schema, name, partitioned, referenced, key, unique, range_of, parent, bound, made = row
    return Table(
        schema=schema,
        name=name,
        columns=tuple(_columns(connection, oid, rows)),
        key=tuple(key or ()),
        unique=frozenset(unique or ()),
        referenced=referenced,
        partitioned=partitioned,
        range_of=range_of or "",
        parent=parent or "",
        bound=bound or "",
        rows=rows[oid][1],
        indexes=tuple(made or ()),
    )


def _columns(connection: Connection, oid: int, rows: _Rows) -> Iterator[Column]:
    for row in connection.execute(_COLUMNS.encode(), (oid,)).fetchall():
        facts = dict(zip(_NAMES, row, strict=True))
        target, led_to = facts.pop("target"), facts.pop("led_to")
        if target in rows:
            table, number = rows[target]
            facts["references"] = Reference(table=table, column=led_to, rows=number)
        yield Column(**facts | {"labels": tuple(facts["labels"])})
