"""Finds the store that has the files of a table."""

from pathlib import Path

from cdc.lake.files.file_store import FileStore
from cdc.lake.files.local import LocalStore
from cdc.lake.layout import is_local


def store_of(path: str) -> FileStore:
    """Return the store of the files below ``path``.

    Raises CONFIG if the environment does not say how to reach an object store.
    """
    if is_local(path):
        return LocalStore(Path(path))
    from cdc.lake.files.s3 import S3Store  # noqa: PLC0415 - only a lake in an object store needs it

    return S3Store(path)
