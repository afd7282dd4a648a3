"""Reads a table's state from its log: the last checkpoint, then the commits.

delta-rs does not do for this: it gives neither the descriptor of a file's deletion vector nor the
statistics as they are written, and both have to be in a commit that marks rows of the file. What is
read once is kept: the state after the next commit needs that commit alone.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.replay import BEFORE_THE_FIRST, TableState, after
from cdc.lake.files.file_store import FileStore, Stamp
from cdc.lake.files.store_of import store_of
from cdc.lake.files.unreachable import refuse_silence
from cdc.lake.table.entry_file import ENTRY, LOG, entry_name, first_gap, versions_of

_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")
_READ: Final = ("protocol", "metaData", "add", "sidecar")


def checkpoint_name(version: int) -> str:
    """Return the path in the table of a checkpoint of one file."""
    return f"{LOG}/{version:020d}.checkpoint.parquet"


class LogReader:
    """Reads the newest state of the table at ``path``; used by one thread at a time."""

    def __init__(self, path: str) -> None:
        self._store = store_of(path)
        self._state = BEFORE_THE_FIRST
        self._last: Stamp | None = None

    def newest(self) -> TableState:
        """Return the newest state.

        Raises CHAIN_BROKEN if there is none or it cannot be read, TakeMergeError if it has
        something in it that this reader does not know, StoreError as the table's store does.
        """
        try:
            return self._newest()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            refuse_silence(error)
            raise _unreadable(self._store.path, str(error)) from error

    def refuse_changed(self) -> None:
        """Raise CONFLICT if the newest state that was read is no longer in the log."""
        if not self.is_unchanged():
            raise CdcError(
                ErrorKind.CONFLICT,
                f"version {self._state.version} of {self._store.path} is another than was read",
            )

    def is_unchanged(self) -> bool:
        """Return whether the newest state that was read is still in the log."""
        if self._last is None:
            return False
        return self._store.stamp(entry_name(self._state.version)) == self._last

    def _newest(self) -> TableState:
        state = self._state if self.is_unchanged() else self._from_checkpoint()
        while (following := self._after(state)) is not None:
            state = following
        last = self._store.stamp(entry_name(state.version))
        if last is None:
            raise ValueError(f"the entry of version {state.version} is missing")
        self._state, self._last = state, last
        return state

    def _after(self, state: TableState) -> TableState | None:
        """Return the state of the next version; None if there is none."""
        try:
            actions = entry_actions(self._store, state.version + 1)
        except FileNotFoundError:
            return None
        return after(state, state.version + 1, actions)

    def _from_checkpoint(self) -> TableState:
        """Return the state from which commits can be followed: a checkpoint, or nothing."""
        names = self._store.names(LOG)
        commits, checkpoints = versions_of(names, ENTRY), versions_of(names, _CHECKPOINT)
        begin = max(checkpoints, default=0)
        if not commits or first_gap(commits, begin) is not None:
            raise TakeMergeError("its log lacks a commit since its last checkpoint of one file")
        if not checkpoints:
            return BEFORE_THE_FIRST
        return after(BEFORE_THE_FIRST, begin, checkpointed(self._store, begin))


def last_checkpoint(store: FileStore, version: int) -> int | None:
    """Return the newest version, up to this one, that has a checkpoint of one file."""
    checkpoints = versions_of(store.names(LOG), _CHECKPOINT)
    return max((one for one in checkpoints if one <= version), default=None)


def state_at(
    store: FileStore, version: int, checkpoint: int | None, paths: Collection[str] | None = None
) -> TableState:
    """Return a version, followed from a checkpoint before it, or from the first entry.

    With ``paths``, only these of its files are in it: a log of many files is then quick to read.
    Raises what ``entry_actions``, ``checkpointed`` and ``after`` raise.
    """
    state = BEFORE_THE_FIRST
    if checkpoint is not None:
        state = after(state, checkpoint, checkpointed(store, checkpoint, paths))
    for number in range(state.version + 1, version + 1):
        actions = entry_actions(store, number)
        state = after(state, number, (a for a in actions if paths is None or _is_of(a, paths)))
    return state


def _is_of(action: Mapping[str, Any], paths: Collection[str]) -> bool:
    """Return whether an action is of one of these files, or of the whole table."""
    file = action.get("add") or action.get("remove")
    return file is None or file["path"] in paths


def entry_actions(
    store: FileStore, version: int, unless: tuple[str, ...] = ()
) -> Iterator[Mapping[str, Any]]:
    """Return the actions of a version's entry, except those whose line begins in one of these ways.

    Raises OSError, and later ValueError for a line that is no JSON.
    """
    text = store.read(entry_name(version)).decode()
    lines = (line for line in text.split("\n") if line.strip() and not line.startswith(unless))
    return map(json.loads, lines)


def checkpointed(
    store: FileStore, version: int, paths: Collection[str] | None = None
) -> Iterator[Mapping[str, Any]]:
    """Yield what a version's checkpoint of one file says of the table; not what was removed.

    With ``paths``, only of these of its files. Raises OSError, and ValueError for a damaged file.
    """
    with pq.ParquetFile(checkpoint_name(version), filesystem=store.tree) as file:
        names = [name for name in _READ if name in file.schema_arrow.names]
        for name in names:
            column = file.read(columns=[name]).column(name)
            if name == "add" and paths is not None:
                column = _of_paths(column, paths)
            yield from ({name: found} for found in column.drop_null().to_pylist())


def _of_paths(added: pa.ChunkedArray, paths: Collection[str]) -> pa.ChunkedArray:
    wanted = pa.array(list(paths), pa.string())
    return added.filter(pc.is_in(pc.struct_field(added, "path"), value_set=wanted))


def _unreadable(path: str, detail: str) -> CdcError:
    return CdcError(
        ErrorKind.CHAIN_BROKEN,
        f"the log of {path} cannot be read",
        detail=detail,
        reason=Reason.TABLE_UNREADABLE,
    )
