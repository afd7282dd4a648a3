"""Detects foreign commits: each commit of a table that the job maintains is checked once.

A merge succeeds on top of a foreign commit, and its own metadata would hide that commit. So every
version since the last check has to be written by the job.

A table's log is opened only where something else cannot tell. A table whose newest entry is the
file that was seen, with none behind it, is unchanged, and new entries are read alone. What lies
below them is not looked at: if it is damaged while the job commits, that shows when the next
checkpoint cannot be written (``refuse_damaged``).
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from deltalake.exceptions import DeltaError

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.lake.files.file_store import Stamp, StoreError
from cdc.lake.files.store_of import store_of
from cdc.lake.files.unreachable import refuse_silence
from cdc.lake.table.entry_file import (
    CHECKPOINT,
    ENTRY,
    LOG,
    entry_name,
    first_gap,
    versions_of,
)
from cdc.lake.table.positions import open_table, refuse_foreign
from cdc.observe.defects import error_text

_INFO: Final = "commitInfo"


class ForeignCommitCheck:
    """Checks the table at ``path`` for foreign commits; used by one thread at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._store = store_of(path)
        self._file: Stamp | None = None  # the entry of ``seen``; None where it is not known
        self.seen: int | None = None
        """The newest version that was checked; None before the first check."""
        self.delta_id = ""
        """The id of the Delta table, which a table made anew does not have; empty if not known."""

    def checked_version(self) -> int:
        """Check all commits since the last call and return the newest version; -1 without a table.

        Raises CHAIN_BROKEN for a foreign commit, again at every call, and for a table that is gone,
        cannot be read or is at an older version than before.
        """
        seen = self.seen  # another thread may forget it meanwhile
        if seen is not None and self._is_there(seen):
            for commit in self._entries(seen):
                refuse_foreign(self._path, commit)
                seen = int(commit["version"])
                self._take(seen)
            return seen
        return self._opened_version()

    def start_at(self, version: int, delta_id: str = "") -> None:
        """Take ``version`` of the table for checked, and every later one for new."""
        self.seen, self.delta_id, self._file = version, delta_id, None

    def reopen(self) -> None:
        """Have the next check open the table, whatever its newest entry is."""
        self._file = None

    def forget(self) -> None:
        """Start over with the newest commit, because the table was created anew."""
        self.seen = self._file = None
        self.delta_id = ""

    def _is_there(self, version: int) -> bool:
        """Return whether the entry of the version is still the file that was seen."""
        return self._file is not None and self._stat(version) == self._file

    def _entries(self, version: int) -> Iterator[Mapping[str, Any]]:
        """Yield what the entries behind a version say of their commits, in order."""
        while (text := self._read(version + 1)) is not None:
            version += 1
            yield {**_info(self._path, text), "version": version}

    def _opened_version(self) -> int:
        """Do the same by opening the table."""
        try:
            table = open_table(self._path)
            if table is None:
                return self._missing()
            newest = table.version()
            if self.seen is not None and newest < self.seen:
                older = f"is at version {newest}, but was at {self.seen}"
                raise _broken(self._path, older, Reason.TABLE_OLDER)
            new = 1 if self.seen is None else newest - self.seen
            for commit in table.history(new) if new else ():
                refuse_foreign(self._path, commit)
        except DeltaError as error:
            raise _damage(self._path, error) from None
        self.delta_id = str(table.metadata().id)
        self._take(newest)
        return newest

    def _take(self, version: int) -> None:
        self.seen, self._file = version, self._stat(version)

    def _stat(self, version: int) -> Stamp | None:
        try:
            return self._store.stamp(entry_name(version))
        except StoreError:
            raise
        except OSError:
            return None

    def _read(self, version: int) -> str | None:
        """Return the text of a version's entry; None if there is none."""
        try:
            return self._store.read(entry_name(version)).decode()
        except FileNotFoundError:
            return None
        except StoreError:
            raise
        except (OSError, ValueError) as error:
            raise _unreadable(self._path, error_text(error)) from None

    def _missing(self) -> int:
        if self.seen is not None:
            raise _broken(self._path, "is gone", Reason.TABLE_GONE)
        return -1


def refuse_damaged(path: str) -> None:
    """Raise CHAIN_BROKEN if no reader can open the newest version of the table at ``path``."""
    try:
        open_table(path)
    except DeltaError as error:
        raise _damage(path, error) from None


def _damage(path: str, error: DeltaError) -> CdcError:
    """Say why a table cannot be opened; raises StoreError where not the table is at fault."""
    refuse_silence(error)
    names = _log_names(path)
    begin = max(versions_of(names, CHECKPOINT), default=0)
    if (gap := first_gap(versions_of(names, ENTRY), begin)) is not None:
        return _broken(path, f"lacks version {gap} of its log", Reason.TABLE_OLDER)
    return _unreadable(path, error_text(error))


def _log_names(path: str) -> list[str]:
    try:
        return store_of(path).names(LOG)
    except FileNotFoundError:  # deleted while it was opened
        return []


def _info(path: str, text: str) -> Mapping[str, Any]:
    """Return what an entry says of its commit; nothing if it does not say."""
    try:
        actions = [json.loads(line) for line in text.split("\n") if line.strip()]
        return dict(next((action[_INFO] for action in actions if _INFO in action), {}))
    except (ValueError, TypeError) as error:
        raise _unreadable(path, error_text(error)) from None


def _unreadable(path: str, why: str) -> CdcError:
    return _broken(path, f"cannot be read: {why}", Reason.TABLE_UNREADABLE)


def _broken(path: str, what: str, reason: Reason) -> CdcError:
    return CdcError(ErrorKind.CHAIN_BROKEN, f"the Delta table {path} {what}", reason=reason)
