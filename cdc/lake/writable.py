"""Checks that this process can write to a lake, before anything depends on it."""

from errno import ENOSPC
from pathlib import Path
from tempfile import TemporaryFile
from uuid import uuid4

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.events.names import CONTROL_DIRECTORY
from cdc.lake.files.file_store import StoreError
from cdc.lake.files.store_of import store_of
from cdc.lake.layout import control_path, is_local

_PROBE = "probe"


def refuse_unwritable(config: Config) -> None:
    """Check that this process can write to the lake.

    Raises DISK_FULL if no space is left, CONFIG for any other reason, also for an object store
    that would let one writer replace what another has written; StoreError for one that does not
    answer.
    """
    if not is_local(config.lake.path):
        _refuse_unfit_store(control_path(config))
        return
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
            remedy="correct lake.path, or grant this user write permission there",
        ) from None


def _refuse_unfit_store(path: str) -> None:
    store, name = store_of(path), f"{_PROBE}/{uuid4()}"
    try:
        store.put_if_absent(name, b"first")
    except FileNotFoundError:
        raise CdcError(
            ErrorKind.CONFIG,
            f"lake.path: there is no bucket for {path}",
            remedy="create it, or correct lake.path",
        ) from None
    try:
        store.put_if_absent(name, b"second")
    except FileExistsError:
        return
    finally:
        _clean(name, path)
    raise CdcError(
        ErrorKind.CONFIG,
        f"lake.path: the object store of {path} replaces an object in spite of If-None-Match",
        detail="two writers could overwrite each other's commits without either knowing",
        remedy="use a store with conditional writes, or its version that has them",
    )


def _clean(name: str, path: str) -> None:
    """Delete the probe; one that is left does no harm."""
    try:
        store_of(path).delete(name)
    except StoreError:
        return
