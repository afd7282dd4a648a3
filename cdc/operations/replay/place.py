"""Says where a table can be rebuilt to: where nothing is, in a store if the lake is in one."""

from pathlib import Path

from pyarrow import fs
from pydantic import ValidationError

from cdc.config import Config, Lake
from cdc.errors import CdcError, ErrorKind
from cdc.lake.files.store_of import store_of
from cdc.lake.files.unreachable import store_errors_named
from cdc.lake.layout import is_local


def place_for(config: Config, path: str) -> str:
    """Return the path as all readers know it; raises CONFIG for one that cannot be written to.

    Only the session of a lake in an object store can write to one.
    """
    if is_local(path):
        return str(Path(path).resolve())
    if is_local(config.lake.path):
        raise CdcError(
            ErrorKind.CONFIG,
            f"--into {path}: this is not a directory, and the lake is on a local disk",
            remedy="name a path on a local disk that does not exist",
        )
    try:
        return Lake(path=path).path
    except ValidationError as error:
        raise CdcError(
            ErrorKind.CONFIG,
            "--into is neither a directory nor a place in an object store",
            detail=error.errors()[0]["msg"],
            remedy="name s3://bucket/prefix, or a path on a local disk",
        ) from None


def refuse_taken(path: str) -> None:
    """Raise CONFIG for a path at which something is."""
    if _is_taken(path):
        raise CdcError(
            ErrorKind.CONFIG,
            f"--into {path}: this path exists already",
            remedy="name a path that does not exist",
        )


def _is_taken(path: str) -> bool:
    if is_local(path):
        return Path(path).exists()
    with store_errors_named():
        found = fs.FileSelector("", allow_not_found=True)
        return bool(store_of(path).tree.get_file_info(found))
