"""The commits of a table that is kept by the job: each is looked at once, whose it is.

A merge goes on top of whatever somebody else has committed, and its own mark would hide it. So
every version since the last look has to be one of ours.
"""

from deltalake.exceptions import DeltaError

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.lake.table.positions import open_table, refuse_foreign
from cdc.observe.defects import told


class Commits:
    """Of the table at ``path``; used by one thread at a time."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.seen: int | None = None
        """The newest version that is known to be ours."""

    def version(self) -> int:
        """The newest version, after a look at all since the last one; -1 where no table is.

        Raises CHAIN_BROKEN for a commit of somebody else, again with every look, and for a table
        that is gone, cannot be read or is at an older version than it was.
        """
        try:
            table = open_table(self._path)
            if table is None:
                return self._missing()
            newest = table.version()
            if self.seen is not None and newest < self.seen:
                older = f"is at version {newest} and was at {self.seen}"
                raise _broken(self._path, older, Reason.TABLE_OLDER)
            new = 1 if self.seen is None else newest - self.seen
            for commit in table.history(new) if new else ():
                refuse_foreign(self._path, commit)
        except DeltaError as error:
            unread = f"cannot be read: {told(error)}"
            raise _broken(self._path, unread, Reason.TABLE_UNREADABLE) from None
        self.seen = newest
        return newest

    def forget(self) -> None:
        """The table was made anew: begin with its newest commit."""
        self.seen = None

    def _missing(self) -> int:
        if self.seen is not None:
            raise _broken(self._path, "is gone", Reason.TABLE_GONE)
        return -1


def _broken(path: str, what: str, reason: Reason) -> CdcError:
    return CdcError(ErrorKind.CHAIN_BROKEN, f"the Delta table {path} {what}", reason=reason)
