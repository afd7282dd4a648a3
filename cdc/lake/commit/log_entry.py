"""Writes the actions of one commit as the JSON lines of its log entry."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from cdc.lake.commit.replay import LiveFile

ENGINE: Final = "wal2lake"
_MERGE: Final[dict[str, Any]] = {
    "operation": "MERGE",
    "operationParameters": {},
    "isolationLevel": "Serializable",
}
_OPTIMIZE: Final[dict[str, Any]] = {
    "operation": "OPTIMIZE",
    "operationParameters": {"predicate": "[]", "zOrderBy": "[]"},
    "isolationLevel": "SnapshotIsolation",
}
_TIGHT: Final = '"tightBounds":true'
_WIDE: Final = '"tightBounds":false'


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Says what a commit does to the files of a table."""

    marked: Sequence[tuple[LiveFile, LiveFile]]  # each file with its old and its new vector
    removed: Sequence[LiveFile]  # files of which no row is left in place
    added: Sequence[LiveFile]
    moves: bool = False  # rows only change their place: readers of changes have nothing to read


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Says where a commit comes from."""

    read_version: int  # the version that the change was made for; -1 for a table's first
    millis: int  # milliseconds since 1970
    metadata: str  # the position, as a MERGE's commit has it
    transaction: str  # a UUID, of this commit alone
    counts: Mapping[str, int]  # by Delta's names of metrics
    facts: Mapping[str, Any] = field(default_factory=dict)  # what else the commit says


def entry(change: Change, origin: Origin) -> str:
    """Return the text of the log entry.

    Raises ValueError if a data file would be in it with two vectors, or its old vector were kept.
    """
    _refuse_doubles(change)
    return "".join(f"{_text(action)}\n" for action in _actions(change, origin))


def altered_entry(
    operation: str, parameters: Mapping[str, str], action: Mapping[str, Any], origin: Origin
) -> str:
    """Return the text of the log entry of an operation that leaves all files as they are."""
    named = {
        "operation": operation,
        "operationParameters": dict(parameters),
        "isolationLevel": "Serializable",
    }
    actions = ({"commitInfo": _info(origin, named)}, action)
    return "".join(f"{_text(action)}\n" for action in actions)


def combined_counts(change: Change) -> dict[str, int]:
    """Return the metrics of a commit that puts one file in the place of others."""
    return {
        "numAddedFiles": len(change.added),
        "numAddedBytes": sum(file.size for file in change.added),
        "numRemovedFiles": len(change.removed),
        "numRemovedBytes": sum(file.size for file in change.removed),
        "numDeletionVectorsRemoved": sum(file.vector is not None for file in change.removed),
    }


def _actions(change: Change, origin: Origin) -> Iterator[dict[str, Any]]:
    yield {"commitInfo": _info(origin, _OPTIMIZE if change.moves else _MERGE)}
    # Removes come first for the sake of readers that take the lines in order.
    data_change = not change.moves
    for file in [old for old, _ in change.marked] + list(change.removed):
        yield {"remove": removed(file, origin.millis, data_change=data_change)}
    for file in [new for _, new in change.marked] + list(change.added):
        yield {"add": added(file, data_change=data_change)}


def _refuse_doubles(change: Change) -> None:
    paths = [old.path for old, _ in change.marked]
    paths += [file.path for file in (*change.removed, *change.added)]
    if len(paths) != len(set(paths)):
        raise ValueError("a data file is in the commit twice")
    if any(old.path != new.path or old.vector == new.vector for old, new in change.marked):
        raise ValueError("a data file does not get a new vector of its own")


def _info(origin: Origin, operation: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "timestamp": origin.millis,
        **operation,
        **({"readVersion": origin.read_version} if origin.read_version >= 0 else {}),
        "isBlindAppend": False,
        "operationMetrics": {name: str(count) for name, count in origin.counts.items()},
        "userMetadata": origin.metadata,
        "engineInfo": ENGINE,
        "txnId": origin.transaction,
        **origin.facts,
    }


def added(file: LiveFile, *, data_change: bool = True) -> dict[str, Any]:
    """Return the ``add`` of a file with its vector."""
    return {
        "path": file.path,
        "partitionValues": {},
        "size": file.size,
        "modificationTime": file.modified,
        "dataChange": data_change,
        "stats": file.stats,
        **_vector(file),
    }


def removed(file: LiveFile, millis: int, *, data_change: bool = True) -> dict[str, Any]:
    """Return the ``remove`` of a file with the vector that it has had."""
    return {
        "path": file.path,
        "deletionTimestamp": millis,
        "dataChange": data_change,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": file.size,
        **_vector(file),
        "stats": _text({"numRecords": file.records}),
    }


def loosened(file: LiveFile) -> LiveFile:
    """Return the file with statistics that hold for it whichever of its rows are deleted.

    The text is kept but for the one word: read as JSON and written again, a decimal would change.
    A quotation mark within a string has a backslash before it, so the word is found nowhere else.
    """
    stats = (file.stats or "{}").replace(_TIGHT, _WIDE)
    if json.loads(stats).get("tightBounds") is not False:
        stats = f'{{"numRecords":{file.records},{_WIDE}}}'
    return replace(file, stats=stats)


def _vector(file: LiveFile) -> dict[str, Any]:
    return {} if file.vector is None else {"deletionVector": file.vector.action()}


def _text(value: Iterable[Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
