"""Opens a table of the lake as it was at one version."""

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from cdc.errors import CdcError, ErrorKind
from cdc.lake.files.delta import delta_table
from cdc.lake.files.unreachable import refuse_silence
from cdc.observe.defects import error_text


def open_version(path: str, version: int, delta_id: str = "") -> DeltaTable:
    """Open the Delta table at a version; raises CONFIG if that version no longer exists.

    A table that was made anew at the same path counts its versions from 0 again. ``delta_id`` is
    the id of the table that is meant; empty where it is not known, and then not compared.
    """
    try:
        opened = delta_table(path, version)
    except DeltaError as error:
        refuse_silence(error)
        raise _gone(path, version, error_text(error)) from None
    if delta_id and str(opened.metadata().id) != delta_id:
        raise _gone(path, version, "the table was made anew since")
    return opened


def _gone(path: str, version: int, why: str) -> CdcError:
    return CdcError(
        ErrorKind.CONFIG,
        f"version {version} of {path} no longer exists",
        detail=why,
        remedy="choose a later cut; job.vacuum_retention_hours says how long old ones are kept",
    )
