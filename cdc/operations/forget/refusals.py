"""Refuses to forget where something of deleted rows would be left."""

from pyarrow import fs

from cdc.errors import CdcError, ErrorKind
from cdc.events.names import CONTROL_DIRECTORY
from cdc.lake.files.store_of import store_of
from cdc.lake.layout import is_local
from cdc.lake.records.ledger import LedgerRow
from cdc.operations.desk.context import JobContext
from cdc.operations.forget.made_anew import derived_tables
from cdc.tables import TableId, TableMode, TableState


def refuse(job: JobContext, table: TableId) -> None:
    """Raise CONFIG or CONFLICT where not everything of the table could be forgotten."""
    if not is_local(job.config.lake.path):
        raise CdcError(
            ErrorKind.CONFIG,
            "wal2lake forget works in lakes on a local disk only",
            detail="an object store may keep old versions of what is deleted",
            remedy="purge the table, and empty the store's own versions",
        )
    if job.live(table).schema.mode is not TableMode.KEYED:
        raise CdcError(
            ErrorKind.CONFIG,
            f"{table} has no key, and wal2lake forget works for tables with a key only",
            remedy="remove it from source.tables, and wal2lake apply-config --purge it",
        )
    derived_tables(job, table)  # raises where one of them cannot be made anew
    if broken := _broken(job, table):
        raise CdcError(
            ErrorKind.CONFLICT,
            f"files of {table} that a replay could not read are in {broken[0]}",
            remedy="delete that directory",
        )


def _broken(job: JobContext, table: TableId) -> list[str]:
    """Return the directories of the table that were moved aside because they were unreadable."""
    folder = f"{job.config.lake.path}/{CONTROL_DIRECTORY}/broken"
    found = fs.FileSelector("", recursive=True, allow_not_found=True)
    names = [file.path for file in store_of(folder).tree.get_file_info(found)]
    return [f"{folder}/{name}" for name in names if name.endswith(f"/{table.schema}/{table.name}")]


def refuse_unsettled(cut: LedgerRow, table: TableId) -> None:
    """Raise CONFLICT unless the table streams at the cut, without refused events."""
    entry = cut.entry(str(table))
    state = "not in the cut" if entry is None else entry.state
    if state != TableState.STREAMING.value:
        raise CdcError(
            ErrorKind.CONFLICT,
            f"{table} is {state}: of its past everything may still be needed",
            detail=entry.reason if entry else "",
            remedy=f"wal2lake status; wal2lake quarantine retry {table}",
        )
