"""Works out the files of a table after some actions of its log.

A commit's actions have no order: a data file is known by its path and its deletion vector, so that
a commit can remove a file with its old vector and add the same file with a new one.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from cdc.lake.commit.deletion_vector import Vector
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.table_metadata import Metadata, Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveFile:
    """Describes a data file of a version, with the vector that it has there."""

    path: str  # as the log has it
    size: int  # bytes
    modified: int  # milliseconds since 1970
    stats: str | None  # JSON; of all rows of the file, the deleted ones too
    vector: Vector | None = None

    @classmethod
    def parse(cls, action: Mapping[str, Any]) -> Self:
        """Read an ``add`` action.

        Raises TakeMergeError for a partition or a row-tracking id, which our tables do not have.
        """
        if action.get("partitionValues") or action.get("baseRowId") is not None:
            raise TakeMergeError("it has a file with a partition or with row ids")
        vector = action.get("deletionVector")
        return cls(
            path=action["path"],
            size=action["size"],
            modified=action["modificationTime"],
            stats=action.get("stats"),
            vector=None if vector is None else Vector.parse(vector),
        )

    @property
    def records(self) -> int:
        """Return the number of rows in the file, the deleted ones too.

        Raises TakeMergeError if the log does not have it.
        """
        found = json.loads(self.stats or "{}").get("numRecords")
        if not isinstance(found, int):
            raise TakeMergeError("it has a file of which the log has no number of rows")
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TableState:
    """Holds what the log says of a table at one version."""

    version: int
    protocol: Protocol | None
    metadata: Metadata | None
    files: Mapping[str, LiveFile]  # by path

    def described(self) -> tuple[Protocol, Metadata]:
        """Return protocol and metadata; raise TakeMergeError if the log lacks one of them."""
        if self.protocol is None or self.metadata is None:
            raise TakeMergeError("its log has no protocol or no metadata")
        return self.protocol, self.metadata


BEFORE_THE_FIRST = TableState(version=-1, protocol=None, metadata=None, files={})


def after(state: TableState, version: int, actions: Iterable[Mapping[str, Any]]) -> TableState:
    """Return the state after the actions of one commit, or of a checkpoint.

    Raises TakeMergeError if a file would have two vectors at once.
    """
    found = list(actions)
    if any(action.get("sidecar") is not None for action in found):
        raise TakeMergeError("it has a checkpoint of several files")
    for action in found:
        state = _described(state, action)
    files = dict(state.files)
    for removed in _each(found, "remove"):
        _remove(files, removed)
    for added in _each(found, "add"):
        _add(files, LiveFile.parse(added))
    return replace(state, version=version, files=files)


def _described(state: TableState, action: Mapping[str, Any]) -> TableState:
    if (protocol := action.get("protocol")) is not None:
        return replace(state, protocol=Protocol.parse(protocol))
    if (metadata := action.get("metaData")) is not None:
        return replace(state, metadata=Metadata.parse(metadata))
    return state


def _each(actions: Iterable[Mapping[str, Any]], name: str) -> Iterator[Mapping[str, Any]]:
    return (found for action in actions if (found := action.get(name)) is not None)


def _add(files: dict[str, LiveFile], file: LiveFile) -> None:
    if file.path in files and files[file.path].vector != file.vector:
        raise TakeMergeError("it has a file with two deletion vectors at once")
    files[file.path] = file


def _remove(files: dict[str, LiveFile], action: Mapping[str, Any]) -> None:
    vector = action.get("deletionVector")
    old = files.get(action["path"])
    if old is not None and old.vector == (None if vector is None else Vector.parse(vector)):
        del files[old.path]
