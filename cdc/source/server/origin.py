"""Which source it is: the cluster, its timeline, and how far its WAL reaches.

An LSN names a place in the WAL of one cluster on one timeline. A source that was restored, is a
promoted standby, or is another one gives the same LSNs to other changes.
"""

from dataclasses import dataclass
from typing import Final

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.events.values.lsn import format_lsn
from cdc.source.server.connection import Connection, translated
from cdc.source.server.slot import NEW_EPOCH, LostChangesError

# The name of a WAL file begins with its timeline, in eight hexadecimal digits.
_QUERY: Final = """
SELECT c.system_identifier::text, left(pg_walfile_name(l.lsn), 8), (l.lsn - '0/0')::bigint
  FROM pg_control_system() c, (SELECT pg_current_wal_lsn() AS lsn) l
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Of a source, now or as it is known; ``system`` is empty where nothing is known."""

    system: str
    timeline: int
    lsn: int = 0  # where its WAL ends


def origin(connection: Connection) -> Origin:
    """Of the server behind the connection."""
    with translated("asking which cluster the source is"):
        row = connection.execute(_QUERY).fetchone()
    if row is None:
        raise CdcError(ErrorKind.INTERNAL, "Postgres does not say where its WAL ends")
    system, timeline, lsn = row
    return Origin(system=system, timeline=int(timeline, 16), lsn=lsn)


def refuse_other(known: Origin, now: Origin, reached: int) -> None:
    """Raises CHAIN_BROKEN where ``now`` is not the source that changes came from, up to an LSN."""
    if known.system and now.system != known.system:
        raise CdcError(
            ErrorKind.CHAIN_BROKEN,
            f"the source is cluster {now.system}, and what has landed is of {known.system}",
            reason=Reason.SOURCE_REPLACED,
            remedy=f"correct source.url; or, where it is meant, {NEW_EPOCH}",
        )
    if now.lsn < reached:
        raise LostChangesError(
            f"the source's WAL ends at {format_lsn(now.lsn)}, and changes up to "
            f"{format_lsn(reached)} came from it: it was restored to an older state",
            reason=Reason.SOURCE_RESTORED,
        )
    if known.timeline and now.timeline != known.timeline:
        raise LostChangesError(
            f"the source is on timeline {now.timeline}, and what has landed is of "
            f"{known.timeline}: it was recovered, or is a promoted standby",
            reason=Reason.SOURCE_PROMOTED,
            detail="whether it has all that was sent before cannot be known",
        )
