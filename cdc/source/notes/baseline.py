"""The structure each captured table begins with, noted where the log will have it.

A table that is rebuilt from the log years later begins with this note and follows those after it.
"""

from collections.abc import Iterable
from typing import Final

from psycopg import sql

from cdc.source.catalog.catalog import SourceTable
from cdc.source.notes.sql import BASELINE
from cdc.source.notes.triggers import structure_of
from cdc.source.server.connection import Connection, identifier, translated
from cdc.tables import STRUCTURE

_INSERT: Final = """
INSERT INTO {} (noted_at, command, rewrite, converted, table_oid, table_schema, table_name,
                structure)
VALUES (clock_timestamp(), %s, 0, false, %s, %s, %s, %s)
"""
_NEWEST: Final = """
SELECT DISTINCT ON (table_oid) table_oid, id, structure FROM {}
 WHERE command = %s ORDER BY table_oid, id DESC
"""


def note_baseline(connection: Connection, tables: Iterable[SourceTable], *, again: bool) -> None:
    """Note the structure of tables that have no such note; with ``again`` of all of them.

    Called before the slot is made, or before a table is captured: its first event comes later.
    """
    known = {} if again else baselines(connection)
    statement = sql.SQL(_INSERT).format(identifier(STRUCTURE))
    with translated("noting the structure of the tables"):
        for source in tables:
            if source.oid not in known:
                text = structure_of(connection, source.oid)
                where = (source.table.schema, source.table.name)
                connection.execute(statement, (BASELINE, source.oid, *where, text))


def baselines(connection: Connection) -> dict[int, tuple[int, str]]:
    """By the table's OID: id and text of the newest note that a table begins with."""
    with translated("reading the structures that tables begin with"):
        query = sql.SQL(_NEWEST).format(identifier(STRUCTURE))
        rows = connection.execute(query, (BASELINE,)).fetchall()
    return {oid: (number, text) for oid, number, text in rows}
