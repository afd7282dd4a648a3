"""Finds the data files that differ between two versions of a table, by the commits between them.

A commit that only moves rows, as OPTIMIZE does, is left out, and so are the files that it writes.
Delta's protocol says that the files which such a commit adds have exactly the rows of those that it
removes. So the rows change in the other commits alone, and a file counts once for each run of them:
as it was before the first, and as it was after the last. What happens to a file within a run, for
instance one vector after another, does not matter.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cdc.lake.changed.unknown import UnknownChangesError
from cdc.lake.commit.deletion_vector import Vector
from cdc.lake.commit.replay import LiveFile, TableState, after
from cdc.lake.commit.snapshot import entry_actions, last_checkpoint, state_at
from cdc.lake.commit.table_metadata import Metadata, Protocol
from cdc.lake.files.file_store import FileStore

MOST_COMMITS: Final = 1000
"""Each commit between the versions is an entry to read; with more, it is quicker to read all."""
_MOVING: Final = frozenset({"OPTIMIZE", "REORG"})
"""Operations, as the log names them, that are believed to leave every row as it is."""

Action = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """Holds a data file before and after some commits; None where the table does not have it."""

    before: LiveFile | None
    after: LiveFile | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFiles:
    """Tells how the files of a table differ between two versions."""

    files: Sequence[FileChange]
    described: Sequence[tuple[Protocol, Metadata]]
    """What the log says of the whole table: at the old version, and whenever it changed later."""


def changed_files(store: FileStore, old: int, new: int) -> ChangedFiles:
    """Return how the files differ; of the log, only what concerns them is looked at.

    Raises UnknownChangesError if the log contradicts itself or is too long, and what ``state_at``
    raises, FileNotFoundError among it, if the log lacks or does not have either version.
    """
    if not 0 <= old <= new <= old + MOST_COMMITS:
        raise UnknownChangesError(f"versions {old} to {new} are too many, or none")
    entries = [list(entry_actions(store, version)) for version in range(old + 1, new + 1)]
    paths = {action["path"] for entry in entries for action in _of_files(entry)}
    walk = _Walk(state_at(store, old, last_checkpoint(store, old), paths))
    for entry in entries:
        walk.follow(entry)
    return ChangedFiles(files=walk.finished(), described=walk.described)


class _Walk:
    """Follows a table's log commit by commit, and collects the files that changed."""

    def __init__(self, state: TableState) -> None:
        self._state = state
        self._before: dict[str, LiveFile | None] = {}  # by path, of the run that goes on
        self._done: list[FileChange] = []
        self.described = [state.described()]

    def follow(self, entry: Sequence[Action]) -> None:
        """Take the step of one commit."""
        _refuse_unknown(self._state, entry)
        following = after(self._state, self._state.version + 1, entry)
        paths = list(dict.fromkeys(action["path"] for action in _of_files(entry)))
        if _only_moves(entry, paths, self._state, following):
            self._end_run(paths)
        else:
            for path in paths:
                self._before.setdefault(path, self._state.files.get(path))
        self._state = following
        if any(action.get("metaData") or action.get("protocol") for action in entry):
            self.described.append(following.described())

    def finished(self) -> Sequence[FileChange]:
        """Return the changed files of all runs."""
        self._end_run(list(self._before))
        return [change for change in self._done if change.before != change.after]

    def _end_run(self, paths: Iterable[str]) -> None:
        for path in paths:
            if path in self._before:
                now = self._state.files.get(path)
                self._done.append(FileChange(before=self._before.pop(path), after=now))


def _of_files(entry: Iterable[Action]) -> Iterator[Action]:
    """Yield what is said of data files."""
    for action in entry:
        if (found := action.get("add") or action.get("remove")) is not None:
            yield found


def _refuse_unknown(state: TableState, entry: Iterable[Action]) -> None:
    """Raise if the entry removes a file that the version before does not have in that way."""
    for action in entry:
        if (removed := action.get("remove")) is None:
            continue
        vector = removed.get("deletionVector")
        file = state.files.get(removed["path"])
        if file is None or file.vector != (None if vector is None else Vector.parse(vector)):
            raise UnknownChangesError(f"{removed['path']} is removed, which was not there")


def _only_moves(
    entry: Sequence[Action], paths: Sequence[str], before: TableState, following: TableState
) -> bool:
    """Return whether all rows stay what they are; their number is compared to be sure."""
    operations = {a["commitInfo"].get("operation") for a in entry if a.get("commitInfo")}
    return (
        bool(operations)
        and operations <= _MOVING
        and all(action.get("dataChange") is False for action in _of_files(entry))
        and _rows(before, paths) == _rows(following, paths)
    )


def _rows(state: TableState, paths: Iterable[str]) -> int:
    files = [state.files[path] for path in paths if path in state.files]
    return sum(f.records - (0 if f.vector is None else f.vector.cardinality) for f in files)
