"""What must exist in the source: our control schema, the publication, event triggers. Idempotent.

Where the role may not create them, a DBA runs connectors/source.sql once and all of this finds
nothing left to do. Without the event triggers, which only a superuser may make, all else goes on.
"""

from typing import Final

from psycopg import sql

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.source.catalog.catalog import SourceTable
from cdc.source.notes.sql import COLUMNS
from cdc.source.notes.triggers import install
from cdc.source.server.connection import Connection, identifier, translated
from cdc.tables import CONTROL_SCHEMA, HEARTBEAT, SIGNAL, STRUCTURE, TableId

_CONTROL: Final = {
    HEARTBEAT: "(id int PRIMARY KEY, token text NOT NULL, at timestamptz NOT NULL)",
    SIGNAL: "(id text PRIMARY KEY, type text NOT NULL, data text)",
    STRUCTURE: COLUMNS,
}
_PUBLICATION: Final = """
SELECT puballtables, pubinsert AND pubupdate AND pubdelete AND pubtruncate, pubviaroot
  FROM pg_publication WHERE pubname = %s
"""
_PUBLISHED: Final = """
SELECT n.nspname, c.relname, r.prqual IS NOT NULL OR r.prattrs IS NOT NULL
  FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
  JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE p.pubname = %s
"""


def prepare(connection: Connection, config: Config, tables: list[SourceTable]) -> None:
    """Create what is missing.

    Raises SOURCE_NOT_READY without the rights, CONFLICT for a publication that is not ours.
    """
    for table, columns in _CONTROL.items():
        _control_table(connection, table, columns)
    with translated(f"writing the first row of {HEARTBEAT}"):
        connection.execute(
            sql.SQL(
                "INSERT INTO {} SELECT 1, '', now() WHERE NOT EXISTS (SELECT FROM {})"
                " ON CONFLICT DO NOTHING"
            ).format(identifier(HEARTBEAT), identifier(HEARTBEAT))
        )
    _publication(connection, config.name, [*_CONTROL, *(t.table for t in tables)])
    install(connection)


def published(connection: Connection, name: str) -> set[TableId] | None:
    """The tables of the publication; None when there is none.

    Raises CONFLICT for one that would not publish every change of every row.
    """
    with translated(f"looking at publication {name}"):
        found = connection.execute(_PUBLICATION, (name,)).fetchone()
        rows = connection.execute(_PUBLISHED, (name,)).fetchall()
    if found is None:
        return None
    all_tables, everything, via_root = found
    filtered = [f"{schema}.{table}" for schema, table, partial in rows if partial]
    wrong = (
        "is FOR ALL TABLES" * all_tables
        or "does not publish insert, update, delete and truncate" * (not everything)
        or "publishes partitions as their root" * via_root
        or f"publishes only a part of {', '.join(filtered)}" * bool(filtered)
    )
    if wrong:
        raise CdcError(
            ErrorKind.CONFLICT,
            f"publication {name} {wrong}",
            remedy="drop it and let wal2lake create it, or set another name in wal2lake.yaml",
        )
    return {TableId(schema, table) for schema, table, _ in rows}


def _control_table(connection: Connection, table: TableId, columns: str) -> None:
    with translated(f"creating {table}"):
        found = connection.execute(
            "SELECT FROM pg_tables WHERE schemaname = %s AND tablename = %s",
            (table.schema, table.name),
        ).fetchone()
        if found is not None:
            return
        schema = sql.Identifier(CONTROL_SCHEMA)
        if not connection.execute(
            "SELECT FROM pg_namespace WHERE nspname = %s", (CONTROL_SCHEMA,)
        ).fetchone():
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
        connection.execute(
            sql.SQL("CREATE TABLE IF NOT EXISTS {} {}").format(identifier(table), sql.SQL(columns))
        )


def _publication(connection: Connection, name: str, wanted: list[TableId]) -> None:
    """Tables are added, never taken out: another wal2lake.yaml may still need them."""
    have = published(connection, name)
    missing = [identifier(table) for table in wanted if table not in (have or set())]
    if not missing:
        return
    form = (
        "CREATE PUBLICATION {} FOR TABLE {}"
        if have is None
        else "ALTER PUBLICATION {} ADD TABLE {}"
    )
    with translated(f"publishing {len(missing)} tables in publication {name}"):
        connection.execute(sql.SQL(form).format(sql.Identifier(name), sql.SQL(", ").join(missing)))
