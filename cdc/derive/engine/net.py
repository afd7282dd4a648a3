"""Strikes out in pairs the rows that were removed from a table and added to it again."""

from typing import Final

from cdc.derive.engine.calculator import Calculator
from cdc.derive.engine.digest import digest
from cdc.lake.changed.changed_rows import ChangedRows

_MARKS: Final = "_cdc_digest, _cdc_number"
_RAW: Final = "wal2lake_raw_removed", "wal2lake_raw_added"


def keep_net(database: Calculator, found: ChangedRows, removed: str, added: str) -> None:
    """Create the tables ``removed`` and ``added`` of the rows that are in one of the two only."""
    for name, rows in zip(_RAW, (found.removed, found.added), strict=True):
        database.keep(name, rows)
    _keep_left(database, removed, *_RAW)
    _keep_left(database, added, *reversed(_RAW))
    for name in _RAW:
        database.run(f"DROP TABLE {name}")


def _keep_left(database: Calculator, name: str, rows: str, others: str) -> None:
    """Create the table ``name`` of those ``rows`` that ``others`` do not have, each so often.

    Both are tables of the same columns. Digests decide, and no set operation of the engine: values
    that are equal may print differently, as 0 and -0 do, and the engine would make them one.
    """
    outputs = database.outputs(f"SELECT * FROM {rows}")  # noqa: S608 - our names
    digested = f"SELECT *, {digest(outputs)} AS _cdc_digest FROM {{}}"  # noqa: S608
    number = "row_number() OVER (PARTITION BY _cdc_digest) AS _cdc_number"
    numbered = f"SELECT *, {number} FROM ({digested})"  # noqa: S608
    left = f"({numbered.format(rows)}) ANTI JOIN ({numbered.format(others)}) USING ({_MARKS})"
    database.run(f"CREATE TABLE {name} AS SELECT * EXCLUDE ({_MARKS}) FROM {left}")  # noqa: S608
