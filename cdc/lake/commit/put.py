"""Puts a commit's entry into a table's log, if nobody else has put one of its version."""

from cdc.errors import CdcError, ErrorKind
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.files.file_store import FileStore, NoLinksError, StoreError
from cdc.lake.layout import is_local
from cdc.lake.table.entry_file import entry_name


def put_entry(store: FileStore, version: int, text: str) -> None:
    """Put the entry of a version in place, whole and durably.

    Raises CONFLICT if there is one, TakeMergeError if the disk has no hard links. In an object
    store the one that is there may be the last of a job that has lost the lake, so that only the
    next start can tell what to do with it: StoreError ends this one.
    """
    try:
        store.put_if_absent(entry_name(version), text.encode())
    except FileExistsError:
        conflict = _conflict(store.path, version)
        raise conflict if is_local(store.path) else StoreError(str(conflict)) from None
    except NoLinksError as error:
        raise TakeMergeError(str(error)) from None


def _conflict(path: str, version: int) -> CdcError:
    return CdcError(
        ErrorKind.CONFLICT,
        f"version {version} of {path} is there already",
        detail="somebody else has committed to the table; nothing of this commit is in it",
    )
