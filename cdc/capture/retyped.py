"""Finds columns whose old values the connector may try to read as a newer type.

The connector takes a column's type from the current catalogue, even for older events
(docs/decisions/0011). It fails at a value that does not fit the type, and at the same event after
every restart.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations, groupby
from typing import Final

from cdc.errors import CdcError
from cdc.events.structure.conversion import common_type
from cdc.events.structure.structure import Structure, parse
from cdc.source.server.connection import Connection, translated
from cdc.tables import STRUCTURE, ColumnId, TableId

_NOTES: Final = f"""
WITH recent AS (
    SELECT DISTINCT s.table_oid FROM {STRUCTURE} s, pg_replication_slots r
     WHERE r.slot_name = %s AND age(s.xmin) <= age(r.catalog_xmin))
SELECT s.table_oid, s.structure FROM {STRUCTURE} s JOIN recent r USING (table_oid)
  , pg_replication_slots p
 WHERE p.slot_name = %s AND s.structure IS NOT NULL
   AND (age(s.xmin) <= age(p.catalog_xmin) OR s.id = (
        SELECT max(o.id) FROM {STRUCTURE} o WHERE o.table_oid = s.table_oid
           AND o.structure IS NOT NULL AND age(o.xmin) > age(p.catalog_xmin)))
 ORDER BY s.table_oid, s.id
"""  # noqa: S608 - of constants
"""The structure notes that the slot may not have passed, and the one before them, for each table.
It may return a few more notes, but never fewer."""


def retyped_columns(
    connection: Connection, name: str, known: Iterable[TableId]
) -> frozenset[ColumnId]:
    """Return columns of the known tables whose type changed where slot ``name`` may not be yet.

    Key columns are left out: without them rows could not be identified.
    """
    with translated("looking for columns that changed their type"):
        rows = connection.execute(_NOTES.encode(), (name, name)).fetchall()
    columns = frozenset[ColumnId]()
    for _, notes in groupby(rows, key=lambda row: row[0]):
        columns |= frozenset(changed_types(list(_parsed(text for _, text in notes))))
    return frozenset(column for column in columns if column.table in set(known))


def changed_types(structures: list[Structure]) -> Iterator[ColumnId]:
    """Yield the columns whose type differs between structures of a table, in their order. Pure.

    Columns are compared by name, as the connector does, even if the name moved to another column.
    A column is left out if every old value also fits the new type.
    """
    keys = {name for structure in structures for name in structure.key}
    retyped_names = {
        column.name
        for before, after in combinations(structures, 2)
        for column in after.columns
        for old in before.columns
        if old.name == column.name and common_type(old, column) is None
    }
    for name in sorted(retyped_names - keys):
        yield ColumnId(structures[-1].table, name)


def _parsed(texts: Iterable[str]) -> Iterator[Structure]:
    for text in texts:
        try:
            yield parse(text)
        except CdcError:
            continue  # the source could not describe it
