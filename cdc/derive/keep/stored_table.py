"""Looks whether a derived table still is what its last step left."""

from typing import Final

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.table.foreign_commits import ForeignCommitCheck

_MENDED: Final = frozenset({Reason.TABLE_EDITED, Reason.TABLE_RESTORED})
"""A commit of somebody else: the next one has the right rows again, if they can be calculated."""


class StoredTable:
    """Follows the log of one derived table; used by one thread at a time."""

    def __init__(self, path: str, *, is_calculated: bool) -> None:
        """Follow the table at ``path``; ``is_calculated`` if all rows follow from its inputs."""
        self._is_calculated = is_calculated
        self._check = ForeignCommitCheck(path)

    @property
    def newest(self) -> int | None:
        """Return the newest version at the last look; None if there was none."""
        return self._check.seen

    def damage(self, before: DerivedEntry) -> CdcError | None:
        """Return why nothing can be committed to the table any more; None if something can.

        ``before`` is its entry in the last cut. The answer stays until ``forget``.
        """
        try:
            version = self._check.checked_version()
        except CdcError as error:
            if error.kind is not ErrorKind.CHAIN_BROKEN:
                raise
            if not self._is_mended(error.reason):
                return error
            self._check.forget()
            return None
        is_same = before.delta_id in {"", self._check.delta_id}
        if 0 <= version < before.version and is_same:
            what = f"the Delta table is at version {version}, but was at {before.version}"
            return CdcError(ErrorKind.CHAIN_BROKEN, what, reason=Reason.TABLE_OLDER)
        return None

    def _is_mended(self, reason: Reason | None) -> bool:
        """Return whether the next commit mends it."""
        return reason is Reason.TABLE_GONE or (self._is_calculated and reason in _MENDED)

    def suspect(self) -> None:
        """Have the whole log read at the next look."""
        self._check.reopen()

    def forget(self) -> None:
        """Start over, because the table is made anew."""
        self._check.forget()

    def delta_id(self) -> str:
        """Return the id of the Delta table."""
        if not self._check.delta_id:
            self._check.checked_version()
        return self._check.delta_id
