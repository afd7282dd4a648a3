"""Strikes out in pairs the rows that were removed from a table and added to it again."""

from typing import Final

import pyarrow as pa

from cdc.derive.engine.calculator import Calculator
from cdc.derive.engine.digest import digest
from cdc.derive.engine.numbered import keep_numbered
from cdc.lake.changed.changed_rows import ChangedRows

_DIGEST: Final = "_cdc_digest"
_NUMBER: Final = "_cdc_number"
_MARKS: Final = f"{_DIGEST}, {_NUMBER}"
_RAW: Final = "wal2lake_raw"
_MARKED: Final = "wal2lake_marked_removed", "wal2lake_marked_added"


def keep_net(database: Calculator, found: ChangedRows, removed: str, added: str) -> None:
    """Create the tables ``removed`` and ``added`` of the rows that are in one of the two only."""
    for name, rows in zip(_MARKED, (found.removed, found.added), strict=True):
        _keep_marked(database, name, rows)
    for name, rows, others in ((removed, *_MARKED), (added, *reversed(_MARKED))):
        left = f"{rows} ANTI JOIN {others} USING ({_MARKS})"
        database.run(f"CREATE TABLE {name} AS SELECT * EXCLUDE ({_MARKS}) FROM {left}")  # noqa: S608
    for name in _MARKED:
        database.run(f"DROP TABLE {name}")


def _keep_marked(database: Calculator, name: str, rows: pa.Table) -> None:
    """Create the table ``name`` of rows with their digests, and a number among equal ones.

    Digests decide, and no set operation of the engine: values that are equal may print differently,
    as 0 and -0 do, and the engine would make them one.
    """
    database.keep(_RAW, rows)
    outputs = database.outputs(f"SELECT * FROM {_RAW}")  # noqa: S608 - our names
    digested = f"SELECT *, {digest(outputs)} AS {_DIGEST} FROM {_RAW}"  # noqa: S608
    keep_numbered(database, name, digested, _DIGEST, _NUMBER)
    database.run(f"DROP TABLE {_RAW}")
