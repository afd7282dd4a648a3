"""Reads a table's state from its log on a local disk: the last checkpoint, then the commits.

delta-rs does not do for this: it gives neither the descriptor of a file's deletion vector nor the
statistics as they are written, and both have to be in a commit that marks rows of the file. What is
read once is kept: the state after the next commit needs that commit alone.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.replay import BEFORE_THE_FIRST, TableState, after
from cdc.lake.table.entry_file import LOG, EntryFile, entry_file, entry_name

_COMMIT: Final = re.compile(r"(\d{20})\.json")
_CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\.parquet")
_READ: Final = ("protocol", "metaData", "add", "sidecar")


def checkpoint_name(version: int) -> str:
    """Return the path in the table of a checkpoint of one file."""
    return f"{LOG}/{version:020d}.checkpoint.parquet"


class LogReader:
    """The newest state of the table at ``path``; used by one thread at a time."""

    def __init__(self, path: str) -> None:
        self._folder = Path(path)
        self._state = BEFORE_THE_FIRST
        self._last: EntryFile | None = None

    def newest(self) -> TableState:
        """Return the newest state.

        Raises CHAIN_BROKEN if there is none or it cannot be read, TakeMergeError if it has
        something in it that this reader does not know.
        """
        try:
            return self._newest()
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise _unreadable(self._folder, str(error)) from error

    def refuse_changed(self) -> None:
        """Raise CONFLICT if the newest state that was read is no longer in the log."""
        if not self.is_unchanged():
            raise CdcError(
                ErrorKind.CONFLICT,
                f"version {self._state.version} of {self._folder} is another than was read",
            )

    def is_unchanged(self) -> bool:
        """Return whether the newest state that was read is still in the log."""
        now = entry_file(self._folder, self._state.version)
        return now is not None and now == self._last

    def _newest(self) -> TableState:
        state = self._state if self.is_unchanged() else self._from_checkpoint()
        while (path := self._folder / entry_name(state.version + 1)).exists():
            state = after(state, state.version + 1, _actions(path))
        last = entry_file(self._folder, state.version)
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
