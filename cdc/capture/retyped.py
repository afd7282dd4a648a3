"""Columns that the connector may read by a type which their values do not have yet.

It takes the name of a column's type from the catalogue of now, for events of before as well
(docs/decisions/0011). One whose value is none of that type ends it, at the same place for ever.
"""

from collections.abc import Iterable, Iterator
from itertools import combinations, groupby
from typing import Final

from cdc.errors import CdcError
from cdc.events.structure.conversion import held
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
"""What the slot has kept for itself, and per table the note before that: a few more, never less."""


def retyped(connection: Connection, name: str, known: Iterable[TableId]) -> frozenset[ColumnId]:
    """Of known tables, columns whose type changed at a place that the slot may not have passed.

    Columns of a key are none of them: without these the rows could not be told apart.
    """
    with translated("looking for columns that changed their type"):
        rows = connection.execute(_NOTES.encode(), (name, name)).fetchall()
    found = frozenset[ColumnId]()
    for _, notes in groupby(rows, key=lambda row: row[0]):
        found |= frozenset(changed(list(_parsed(text for _, text in notes))))
    return frozenset(column for column in found if column.table in set(known))


def changed(structures: list[Structure]) -> Iterator[ColumnId]:
    """By name, as the connector goes, whatever column bore it. Pure.

    One whose values are all of its new type too is none of them.
    """
    keys = {name for each in structures for name in each.key}
    found = {
        column.name
        for before, after in combinations(structures, 2)
        for column in after.columns
        for old in before.columns
        if old.name == column.name and held(old, column) is None
    }
    for name in sorted(found - keys):
        yield ColumnId(structures[-1].table, name)


def _parsed(texts: Iterable[str]) -> Iterator[Structure]:
    for text in texts:
        try:
            yield parse(text)
        except CdcError:
            continue  # the source could not describe it
