"""Record the initial structure of each captured table as a note, which reaches the log.

A table that is rebuilt from the log years later starts with this note and applies the later ones.
"""

from collections.abc import Iterable
from typing import Final

from psycopg import sql

from cdc.source.catalog.catalog import SourceTable
from cdc.source.notes.structure_table import BASELINE
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
    """Write a baseline note for each table that has none, or for all of them if ``again``.

    Must be called before the slot is created, or before a table is captured, so that the note
    precedes the table's first event. Raises like ``translated``.
    """
    noted = {} if again else baselines(connection)
    statement = sql.SQL(_INSERT).format(identifier(STRUCTURE))
    with translated("noting the structure of the tables"):
        for source in tables:
            if source.oid not in noted:
                text = structure_of(connection, source.oid)
                where = (source.table.schema, source.table.name)
                connection.execute(statement, (BASELINE, source.oid, *where, text))


def baselines(connection: Connection) -> dict[int, tuple[int, str]]:
    """Return the id and the text of each table's newest baseline note, by the table's OID.

    Raises like ``translated``.
    """
    with translated("reading the baseline notes"):
        query = sql.SQL(_NEWEST).format(identifier(STRUCTURE))
        rows = connection.execute(query, (BASELINE,)).fetchall()
    return {oid: (number, text) for oid, number, text in rows}
