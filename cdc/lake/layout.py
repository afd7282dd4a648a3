"""Paths of all tables and directories below ``lake.path``."""

import re
from typing import Final

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.events.names import CONTROL_DIRECTORY
from cdc.tables import TableId

FORBIDDEN = frozenset("/\\\0\n\r")
_IN_A_KEY: Final = re.compile(r"[\w.-]+", re.ASCII)
"""Names that every reader of an object store writes in the same way into a key."""


def table_path(config: Config, table: TableId) -> str:
    """Return ``<lake>/<schema>/<table>``.

    Raises CONFIG if the schema or the table name cannot be a single path element of the lake.
    """
    for part in (table.schema, table.name):
        if part in {".", "..", CONTROL_DIRECTORY} or FORBIDDEN & set(part):
            raise CdcError(
                ErrorKind.CONFIG,
                f"table {table} cannot be stored: its name cannot be used as a directory name",
                remedy="rename it in the source, or exclude it from source.tables",
            )
        if not (is_local(config.lake.path) or _IN_A_KEY.fullmatch(part)):
            raise CdcError(
                ErrorKind.CONFIG,
                f"table {table} cannot be stored in an object store: its name has other characters "
                "than letters, digits, _ . and -",
                remedy="rename it in the source, or exclude it from source.tables",
            )
    return table_under(config.lake.path, table)


def table_under(lake: str, table: TableId) -> str:
    """Return the path of the table in the lake at ``lake``, without checking its name."""
    return f"{lake}/{table.schema}/{table.name}"


def lake_of(path: str) -> str:
    """Return the lake that has the table, or wal2lake's own table, at ``path``."""
    return path.rsplit("/", 2)[0]


def is_local(path: str) -> bool:
    """Return whether the path is on a local disk rather than on an object store."""
    return "://" not in path


def control_path(config: Config) -> str:
    """Return the directory of wal2lake's own tables and files."""
    return f"{config.lake.path}/{CONTROL_DIRECTORY}"


def log_path(config: Config) -> str:
    """Return the path of the log."""
    return f"{config.lake.path}/{CONTROL_DIRECTORY}/log"


def ledger_path(config: Config) -> str:
    """Return the path of the ledger."""
    return ledger_under(config.lake.path)


def ledger_under(lake: str) -> str:
    """Return the path of the ledger of the lake at ``lake``."""
    return f"{lake}/{CONTROL_DIRECTORY}/ledger"


def broken_path(config: Config, operation: str, table: TableId) -> str:
    """Return where an operation moves an unreadable table directory that it replaces."""
    return f"{config.lake.path}/{CONTROL_DIRECTORY}/broken/{operation}/{table.schema}/{table.name}"


def quarantine_path(config: Config) -> str:
    """Return the path of the quarantine table."""
    return f"{config.lake.path}/{CONTROL_DIRECTORY}/quarantine"


def readings_path(config: Config) -> str:
    """Return the path of the index of readings (cdc/lake/records/readings.py)."""
    return f"{config.lake.path}/{CONTROL_DIRECTORY}/readings"


def reading_path(config: Config, table: TableId, number: int) -> str:
    """Return the path of one reading: all rows of the table, or the difference it made."""
    return f"{config.lake.path}/{CONTROL_DIRECTORY}/read/{table.schema}/{table.name}/{number}"


def operations_path(config: Config) -> str:
    """Return the path of the table of operations."""
    return f"{config.lake.path}/{CONTROL_DIRECTORY}/operations"


def epochs_path(config: Config) -> str:
    """Return the path of the table of epochs."""
    return f"{config.lake.path}/{CONTROL_DIRECTORY}/epochs"


def aside_path(config: Config, operation: str) -> str:
    """Return the working directory of one operation, not needed once the operation has ended."""
    return f"{asides_path(config)}/{operation}"


def asides_path(config: Config) -> str:
    """Return the directory that has the working directories."""
    return f"{control_path(config)}/aside"


def derived_aside_path(config: Config) -> str:
    """Return the directory where rows of derived tables wait for their commit."""
    return aside_path(config, "derived")
