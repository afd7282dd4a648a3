"""Say how far a history has the log, since when, and where a new one begins. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from cdc.derive.log.event import Place
from cdc.errors import CdcError, ErrorKind
from cdc.lake.records.readings import Reading
from cdc.tables import TableId

BEGINNING = Place(epoch=1, offset=-1, marker_offset=-1, reading=0)
"""Before the first event of the log."""
NOT_KEPT: Final = -1
"""Number of the reading with which a history began that began with its table at a cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """Says what a history has: the events between two places, of the table at LSN ``lsn``.

    ``since_lsn`` is the first LSN at which it equals its table; None while it has nothing.
    """

    begun: int  # number of the reading or image that it began with; 0 for the log's beginning
    since: Place
    since_lsn: int | None
    upto: Place
    lsn: int | None
    latest: str | None = None  # the latest time of a commit so far, in ISO 8601

    def facts(self) -> dict[str, Any]:
        """Return it for a mark."""
        return asdict(self)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "Reach":
        """Return the reach in the facts of a mark."""
        return cls(
            begun=facts["begun"],
            since=Place(**facts["since"]),
            since_lsn=facts["since_lsn"],
            upto=Place(**facts["upto"]),
            lsn=facts["lsn"],
            latest=facts["latest"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Says what the lake has of a table's past: its readings, and up to where its log expired."""

    offset: int  # of the table's topic; -1 for none
    marker_offset: int
    readings: Sequence[Reading]  # that are in the table at the cut, oldest first


def first_place(upto: Place, kept: Kept) -> tuple[Place, Reading | None]:
    """Return where a new history begins, as early as it can, and the reading that it begins with.

    That is the first event, of a table that was never read. Otherwise it is the oldest whole
    reading or image of the epoch whose events have all been kept.
    """
    whole = (
        one
        for one in kept.readings
        if one.whole and one.position.epoch == upto.epoch and one.position.offset >= kept.offset
    )
    if upto.epoch == BEGINNING.epoch and upto.reading == 0 and kept.offset < 0:
        return BEGINNING, None
    first = next(whole, None)
    if first is None:
        return BEGINNING, None
    return _behind(first, kept), first


def same_place(table: TableId, old: Reach, upto: Place, kept: Kept) -> tuple[Place, Reading | None]:
    """Return where a history begins that is made anew: where it began before.

    Raises CONFLICT where the lake no longer has what it began with, or where that was in an earlier
    epoch, of which a slice of the log has nothing: it would have less.
    """
    begun = next((one for one in kept.readings if one.number == old.begun), None)
    expired = kept.offset > old.since.offset or kept.marker_offset > old.since.marker_offset
    if expired or (begun is None and old.begun) or old.since.epoch != upto.epoch:
        since = "the beginning" if old.since_lsn is None else f"LSN {old.since_lsn}"
        raise CdcError(
            ErrorKind.CONFLICT,
            f"{table} has the history since {since}, and the log no longer reaches so far back",
            remedy="keep it as it is; give a new definition another name, or remove the table with "
            "wal2lake derived drop to begin again",
        )
    return old.since, begun


def _behind(reading: Reading, kept: Kept) -> Place:
    position = reading.position
    return Place(
        epoch=position.epoch,
        offset=position.offset,
        marker_offset=kept.marker_offset,
        reading=reading.number if not reading.image else position.reading,
    )
