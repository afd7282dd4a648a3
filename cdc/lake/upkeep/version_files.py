"""Names the files that kept versions of a table need, by what its log says."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import unquote

from cdc.lake.commit.deletion_vector import Vector
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.snapshot import entry_actions, state_at
from cdc.lake.files.file_store import FileStore
from cdc.lake.upkeep.transaction_log import Kept

NOT_UNDERSTOOD: Final = (TakeMergeError, FileNotFoundError, ValueError, KeyError, TypeError)
"""What reading a log raises that has something in it which is not known here."""
_NO_ADD: Final = ('{"commitInfo"', '{"remove"')
"""How lines of an entry begin that name no file of its version."""


def needed(store: FileStore, keeping: Kept) -> Iterator[str]:
    """Yield the files of the oldest kept version, and those that each later one has added.

    Raises one of ``NOT_UNDERSTOOD``, or OSError.
    """
    for file in state_at(store, keeping.oldest, keeping.checkpoint).files.values():
        vector = {} if file.vector is None else {"deletionVector": file.vector.action()}
        yield from files_of({"path": file.path, **vector})
    for version in range(keeping.oldest + 1, keeping.newest + 1):
        for action in entry_actions(store, version, unless=_NO_ADD):
            if (added := action.get("add")) is not None:
                yield from files_of(added)


def files_of(action: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths of the files of an ``add`` or ``remove``, its vector's in the table too."""
    yield unquote(action["path"])
    if (vector := action.get("deletionVector")) is not None:
        name = Vector.parse(vector).file
        if name is not None:
            yield name


def is_inside(name: str) -> bool:
    """Return whether a path is one in the table's folder, relative to it."""
    place = PurePosixPath(name)
    return not place.is_absolute() and ":" not in name and ".." not in place.parts
