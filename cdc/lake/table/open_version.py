"""Opens a table of the lake as it was at one version."""

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from cdc.errors import CdcError, ErrorKind
from cdc.lake.files.delta import delta_table
from cdc.lake.files.unreachable import refuse_silence
from cdc.observe.defects import error_text


def open_version(path: str, version: int) -> DeltaTable:
    """Open the Delta table at a version; raises CONFIG if that version no longer exists."""
    try:
        return delta_table(path, version)
    except DeltaError as error:
        refuse_silence(error)
        raise CdcError(
            ErrorKind.CONFIG,
            f"version {version} of {path} no longer exists",
            detail=error_text(error),
            remedy="choose a later cut; job.vacuum_retention_hours says how long old ones are kept",
        ) from None
