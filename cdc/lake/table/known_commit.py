"""Commits by delta-rs of which is known whether they are in the table, though an answer was lost.

delta-rs takes its own entry for somebody else's if the answer to the put was lost, and appends once
more behind it. So in an object store it makes one attempt, under a name by which it is found.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from uuid import uuid4

from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError

from cdc.lake.files import fence
from cdc.lake.files.file_store import StoreError
from cdc.lake.layout import is_local
from cdc.lake.table.positions import open_table
from cdc.observe.defects import error_text

ATTEMPT: Final = "wal2lake.attempt"
_NEWEST: Final = 3
"""Among so many commits it is looked for: the job is the only writer, and makes no others."""


@contextmanager
def known_commit(
    path: str, properties: CommitProperties | None = None, *, table: DeltaTable | None = None
) -> Iterator[CommitProperties | None]:
    """Give the properties for one commit to the table at ``path``; ``properties`` are in them.

    The block ends without an error if the commit is in the table; ``table``, by which it was made,
    has it then, although the answer was lost. In an object store it raises
    StoreError if it is not, and also before it is begun if the job may have lost the lake.
    """
    if is_local(path):
        yield properties
        return
    fence.refuse_fenced(path)
    attempt = uuid4().hex
    try:
        yield _with(properties, attempt)
    except (DeltaError, OSError) as error:
        if not _is_in(path, attempt):
            raise StoreError(f"a commit to {path} failed: {error_text(error)}") from None
        if table is not None:
            table.update_incremental()


def _with(properties: CommitProperties | None, attempt: str) -> CommitProperties:
    given = (properties.custom_metadata if properties else None) or {}
    return CommitProperties(custom_metadata={**given, ATTEMPT: attempt}, max_commit_retries=0)


def _is_in(path: str, attempt: str) -> bool:
    try:
        table = open_table(path)
        newest = table.history(_NEWEST) if table else []
    except (DeltaError, OSError) as error:
        raise StoreError(f"{path} cannot be read: {error_text(error)}") from None
    return any(commit.get(ATTEMPT) == attempt for commit in newest)
