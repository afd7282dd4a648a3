"""Reads a table's state from its log on a local disk: the last checkpoint, then the commits.

delta-rs does not do for this: it gives neither the descriptor of a file's deletion vector nor the
statistics as they are written, and both have to be in a commit that marks rows of the file. What is
read once is kept: the state after the next commit needs that commit alone.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.replay import BEFORE_THE_FIRST, TableState, after

LOG: Final = "_delta_log"
_COMMIT: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")
_READ: Final = ("protocol", "metaData", "add", "sidecar")


def entry_name(version: int) -> str:
    """Return the path in the table of the log entry of a version."""
    return f"{LOG}/{version:020d}.json"


@dataclass(frozen=True, slots=True)
class _Identity:
    """Of the file that was read: another file in its place is another table."""

    inode: int
    modified: int  # nanoseconds
    size: int


def checkpoint_name(version: int) -> str:
    """Return the path in the table of a checkpoint of one file."""
    return f"{LOG}/{version:020d}.checkpoint.parquet"


class LogReader:
    """The newest state of the table at ``path``; used by one thread at a time."""

    def __init__(self, path: str) -> None:
        self._folder = Path(path)
        self._state = BEFORE_THE_FIRST
        self._last: _Identity | None = None

    def newest(self) -> TableState:
        """Return the newest state.

        Raises CHAIN_BROKEN if there is none or it cannot be read, TakeMergeError if it has
        something in it that this reader does not know.
        """
        try:
            return self._newest()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise _unreadable(self._folder, str(error)) from error

    def is_unchanged(self) -> bool:
        """Return whether the newest state that was read is still in the log."""
        return self._last is not None and self._identity(self._state.version) == self._last

    def _newest(self) -> TableState:
        state = self._state if self.is_unchanged() else self._from_checkpoint()
        while (path := self._folder / entry_name(state.version + 1)).exists():
            state = after(state, state.version + 1, _actions(path))
        last = self._identity(state.version)
        if last is None:
            raise ValueError(f"the entry of version {state.version} is missing")
        self._state, self._last = state, last
        return state

    def _from_checkpoint(self) -> TableState:
        """Return the state from which commits can be followed: a checkpoint, or nothing."""
        names = [path.name for path in (self._folder / LOG).iterdir()]
        commits, checkpoints = _versions(names, _COMMIT), _versions(names, _CHECKPOINT)
        begin = max(checkpoints, default=0)
        if not commits or not set(range(begin, max(commits) + 1)) <= commits:
            raise TakeMergeError("its log lacks a commit since its last checkpoint of one file")
        if not checkpoints:
            return BEFORE_THE_FIRST
        return after(BEFORE_THE_FIRST, begin, _checkpointed(self._folder / checkpoint_name(begin)))

    def _identity(self, version: int) -> _Identity | None:
        try:
            found = (self._folder / entry_name(version)).stat()
        except FileNotFoundError:
            return None
        return _Identity(found.st_ino, found.st_mtime_ns, found.st_size)


def _versions(names: Iterable[str], form: re.Pattern[str]) -> set[int]:
    return {int(found[1]) for name in names if (found := form.fullmatch(name))}


def _actions(path: Path) -> Iterator[Mapping[str, Any]]:
    for line in path.read_text(encoding="utf-8").split("\n"):
        if line.strip():
            yield json.loads(line)


def _checkpointed(path: Path) -> Iterator[Mapping[str, Any]]:
    with pq.ParquetFile(path) as file:
        names = [name for name in _READ if name in file.schema_arrow.names]
        for name in names:
            column = file.read(columns=[name]).column(name)
            yield from ({name: found} for found in column.drop_null().to_pylist())


def _unreadable(folder: Path, detail: str) -> CdcError:
    return CdcError(
        ErrorKind.CHAIN_BROKEN,
        f"the log of {folder} cannot be read",
        detail=detail,
        reason=Reason.TABLE_UNREADABLE,
    )
