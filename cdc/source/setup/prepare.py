"""Create what must exist in the source: control schema, publication, event triggers. Idempotent.

If the role may not create them, a DBA runs connectors/source.sql once, which leaves nothing to do
here. Only a superuser may create the event triggers; everything else works without them.
"""

from typing import Final

from psycopg import sql

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.source.catalog.catalog import SourceTable
from cdc.source.notes.structure_table import COLUMNS
from cdc.source.notes.triggers import install
from cdc.source.server.connection import Connection, identifier, translated
from cdc.tables import CONTROL_SCHEMA, HEARTBEAT, STRUCTURE, TableId

_CONTROL: Final = {
    HEARTBEAT: "(id int PRIMARY KEY, token text NOT NULL, at timestamptz NOT NULL)",
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
    """Create the control tables, publish them and ``tables``, and install the event triggers.

    Leaves alone what exists. Raises SOURCE_NOT_READY without the privileges, CONFLICT for a
    publication that is not ours, and otherwise like ``translated``.
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


def publication_tables(connection: Connection, name: str) -> set[TableId] | None:
    """Return the tables of the publication, or None if it does not exist.

    Raises CONFLICT for a publication that does not publish every change of every row.
    """
    with translated(f"reading publication {name}"):
        publication = connection.execute(_PUBLICATION, (name,)).fetchone()
        rows = connection.execute(_PUBLISHED, (name,)).fetchall()
    if publication is None:
        return None
    all_tables, everything, via_root = publication
    filtered = [f"{schema}.{table}" for schema, table, partial in rows if partial]
    wrong = (
        "is FOR ALL TABLES" * all_tables
        or "does not publish insert, update, delete and truncate" * (not everything)
        or "publishes partitions under the name of their root" * via_root
        or f"publishes only part of {', '.join(filtered)}" * bool(filtered)
    )
    if wrong:
        raise CdcError(
            ErrorKind.CONFLICT,
            f"publication {name} {wrong}",
            remedy="drop it so that wal2lake creates one, or choose another name in wal2lake.yaml",
        )
    return {TableId(schema, table) for schema, table, _ in rows}


def _control_table(connection: Connection, table: TableId, columns: str) -> None:
    with translated(f"creating {table}"):
        exists = connection.execute(
            "SELECT FROM pg_tables WHERE schemaname = %s AND tablename = %s",
            (table.schema, table.name),
        ).fetchone()
        if exists is not None:
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
    """Add missing tables. None is removed, because another wal2lake.yaml may still need it."""
    have = publication_tables(connection, name)
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
