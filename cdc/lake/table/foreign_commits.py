"""Detects foreign commits: each commit of a table that the job maintains is checked once.

A merge succeeds on top of a foreign commit, and its own metadata would hide that commit. So every
version since the last check has to be written by the job.
"""

from deltalake.exceptions import DeltaError

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.lake.table.positions import open_table, refuse_foreign
from cdc.observe.defects import error_text


class ForeignCommitCheck:
    """The checked commits of the table at ``path``; used by one thread at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.seen: int | None = None
        """The newest version that was checked; None before the first check."""

    def checked_version(self) -> int:
        """Check all commits since the last call and return the newest version; -1 without a table.

        Raises CHAIN_BROKEN for a foreign commit, again at every call, and for a table that is gone,
        cannot be read or is at an older version than before.
        """
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
            unread = f"cannot be read: {error_text(error)}"
            raise _broken(self._path, unread, Reason.TABLE_UNREADABLE) from None
        self.seen = newest
        return newest

    def start_at(self, version: int) -> None:
        """Take ``version`` for checked, and every later one for new."""
        self.seen = version

    def forget(self) -> None:
        """Start over with the newest commit, because the table was created anew."""
        self.seen = None

    def _missing(self) -> int:
        if self.seen is not None:
            raise _broken(self._path, "is gone", Reason.TABLE_GONE)
        return -1


def _broken(path: str, what: str, reason: Reason) -> CdcError:
    return CdcError(ErrorKind.CHAIN_BROKEN, f"the Delta table {path} {what}", reason=reason)
