"""Read the relations of the source, captured or not, and what decides whether each is fit."""

from dataclasses import dataclass
from typing import Any, Final

from cdc.source.catalog.identity import ReplicaIdentity
from cdc.source.server.connection import Connection, translated
from cdc.tables import CONTROL_SCHEMA, TableId

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """Describes a relation as the catalogue does, with its identity and the role's rights to it."""

    table: TableId
    oid: int
    kind: str
    persistence: str
    row_security: bool
    readable: bool
    has_children: bool
    identity: ReplicaIdentity
    in_publication: bool


def relations_of(connection: Connection, publication: str) -> list[Relation]:
    """Return all relations in order of their names, except Postgres's and our own.

    ``publication`` is the one that ``Relation.in_publication`` speaks of. Raises like
    ``translated``.
    """
    with translated("reading the catalogue"):
        rows = connection.execute(_relations(connection), (publication, CONTROL_SCHEMA)).fetchall()
    return [_relation(row) for row in rows]


def _relations(connection: Connection) -> bytes:
    of_schemas = connection.info.server_version >= _SCHEMAS_SINCE
    return _RELATIONS.format(of_schemas=_OF_SCHEMAS if of_schemas else "false").encode()


def _relation(row: tuple[Any, ...]) -> Relation:
    schema, name, oid, kind, persistence, replica, rls, readable, *others = row
    children, key, index, in_publication = others
    return Relation(
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
