"""Read what has changed in a table of the lake between two cuts.

It is found in the table's own versions: there is no second record of changes that could say
something else than the table.
"""

import sys
from collections.abc import Mapping
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable

from cdc.client.read.admitted import has_late, reasons, told
from cdc.client.read.published import Entry, is_flagged, warning
from cdc.derive.engine.calculator import calculator
from cdc.derive.engine.inputs import columns
from cdc.derive.engine.net import keep_net
from cdc.errors import CdcError, ErrorKind
from cdc.events.values.sql_text import postgres_string
from cdc.lake.changed.changed_rows import ChangedRows, changed_rows
from cdc.lake.records.ledger import LedgerRow
from cdc.lake.table.open_version import open_version

CHANGE: Final = "_cdc_change"
"""The column that says whether a row was ``removed`` or ``added``. An update is one of each."""
_MEMORY_MB: Final = 512
_SIDES: Final = "removed", "added"


def changes_between(table: str, since: LedgerRow, until: LedgerRow, path: str) -> pa.Table:
    """Return the rows of a table at ``path`` that one of two cuts has only, the gone ones first.

    The columns are the table's without wal2lake's own, and CHANGE; of a table that has late rows
    also ADMITTED. Raises TABLE_STOPPED if the table is flagged at a cut, and CONFIG if a cut does
    not have it, or the versions or files that would show what has changed are gone.
    """
    old, new = (_entry(table, row) for row in (since, until))
    opened = open_version(path, new.version, new.delta_id)
    found = _between(path, old.version, new.version, opened)
    is_other = old.delta_id != new.delta_id if old.delta_id else _is_younger(opened, since)
    why = reasons(path, old.version, new.version) if has_late(table, until) else None
    steps = {version: _between(path, version - 1, version, opened) for version in why or ()}
    known = {version: one for version, one in steps.items() if one is not None}
    if found is None or is_other or len(known) < len(steps):
        raise CdcError(
            ErrorKind.CONFIG,
            f"what has changed in {table} since cut {since.cut} is not known",
            detail="old files are gone, or a column or the whole table was made anew since",
            remedy="choose a later cut, or read the whole table at both",
        )
    return _net(found, known, why)


def _between(path: str, old: int, new: int, opened: DeltaTable) -> ChangedRows | None:
    return changed_rows(path, old, new, columns(opened), sys.maxsize)


def _is_younger(table: DeltaTable, row: LedgerRow) -> bool:
    """Return whether a table was made after a cut that does not say which table it means.

    Its versions are those of another then.
    """
    created = table.metadata().created_time
    return created is not None and created > row.published_at.timestamp() * 1000


def _entry(table: str, row: LedgerRow) -> Entry:
    entry = row.readable(table)
    if entry is None or entry.version < 0:
        raise CdcError(
            ErrorKind.CONFIG,
            f"cut {row.cut} has no table {table}",
            remedy="choose a later cut; wal2lake cuts lists them",
        )
    if is_flagged(entry):
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            warning(entry, row.cut),
            remedy="choose a cut at which it streams",
        )
    return entry


def _net(
    found: ChangedRows, steps: Mapping[int, ChangedRows], why: Mapping[int, str] | None
) -> pa.Table:
    with calculator(_MEMORY_MB) as database:
        keep_net(database, found, *_SIDES)
        for version, step in steps.items():
            keep_net(database, step, *(f"{side}_{version}" for side in _SIDES))
        added = {side: "" if why is None else f", {told(database, side, why)}" for side in _SIDES}
        sides = (
            f"SELECT *, {postgres_string(side)} AS {CHANGE}{added[side]} FROM {side}"  # noqa: S608
            for side in _SIDES
        )
        return database.rows(" UNION ALL ".join(sides))
