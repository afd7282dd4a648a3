"""Where everything lies under ``lake.path``."""

from errno import ENOSPC
from pathlib import Path
from tempfile import TemporaryFile

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.events.names import CONTROL_DIRECTORY
from cdc.tables import TableId

FORBIDDEN = frozenset("/\\\0\n\r")


def table_path(config: Config, table: TableId) -> str:
    """``<lake>/<schema>/<table>``; raises CONFIG for a name that is no single path element."""
    for part in (table.schema, table.name):
        if part in {".", "..", CONTROL_DIRECTORY} or FORBIDDEN & set(part):
            raise CdcError(
                ErrorKind.CONFIG,
                f"table {table} cannot be kept: its name is not usable as a directory",
                remedy="rename it in the source, or leave it out of source.tables",
            )
    return table_under(config.lake.path, table)


def table_under(lake: str, table: TableId) -> str:
    return f"{lake}/{table.schema}/{table.name}"


def is_local(path: str) -> bool:
    """Whether it is on a disk, and not on an object store."""
    return "://" not in path


def refuse_unwritable(config: Config) -> None:
    """Raises CONFIG for a lake on a local disk that this process cannot write to."""
    if not is_local(config.lake.path):
        return  # an object store says so itself, by its own name for the reason
    try:
        folder = Path(config.lake.path) / CONTROL_DIRECTORY
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        kind = ErrorKind.DISK_FULL if error.errno == ENOSPC else ErrorKind.CONFIG
        raise CdcError(
            kind,
            f"lake.path: {config.lake.path} cannot be written",
            detail=error.strerror or "",
            remedy="correct lake.path, or give this user the right to write there",
        ) from None


def control_path(config: Config) -> str:
    """The directory of what is ours alone."""
    return f"{config.lake.path}/{CONTROL_DIRECTORY}"


def log_path(config: Config) -> str:
    return f"{config.lake.path}/{CONTROL_DIRECTORY}/log"


def ledger_path(config: Config) -> str:
    return ledger_under(config.lake.path)


def ledger_under(lake: str) -> str:
    return f"{lake}/{CONTROL_DIRECTORY}/ledger"


def broken_path(config: Config, operation: str, table: TableId) -> str:
    """Where a directory goes that nobody can read, when the operation puts a table in its place."""
    return f"{config.lake.path}/{CONTROL_DIRECTORY}/broken/{operation}/{table.schema}/{table.name}"


def quarantine_path(config: Config) -> str:
    return f"{config.lake.path}/{CONTROL_DIRECTORY}/quarantine"


def readings_path(config: Config) -> str:
    """The index of readings of the source (cdc/lake/records/readings.py)."""
    return f"{config.lake.path}/{CONTROL_DIRECTORY}/readings"


def reading_path(config: Config, table: TableId, number: int) -> str:
    """What one reading of a table brought, or what it changed."""
    return f"{config.lake.path}/{CONTROL_DIRECTORY}/read/{table.schema}/{table.name}/{number}"


def operations_path(config: Config) -> str:
    return f"{config.lake.path}/{CONTROL_DIRECTORY}/operations"


def epochs_path(config: Config) -> str:
    return f"{config.lake.path}/{CONTROL_DIRECTORY}/epochs"


def aside_path(config: Config, operation: str) -> str:
    """What one operation has under way; nothing in it is needed once the operation has ended."""
    return f"{config.lake.path}/{CONTROL_DIRECTORY}/aside/{operation}"
