"""Identify the source: its cluster, its timeline, and the end of its WAL.

An LSN is a position in the WAL of one cluster on one timeline. After a restore, after the promotion
of a standby, or on another cluster the same LSN stands for other changes.
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
    """Identifies a source, current or recorded; ``system`` is empty if none was recorded."""

    system: str
    timeline: int
    lsn: int = 0  # the end of its WAL


def origin(connection: Connection) -> Origin:
    """Return the identity of the connected server. Raises like ``translated``."""
    with translated("asking which cluster the source is"):
        row = connection.execute(_QUERY).fetchone()
    if row is None:
        raise CdcError(ErrorKind.INTERNAL, "Postgres did not report the end of its WAL")
    system, timeline, lsn = row
    return Origin(system=system, timeline=int(timeline, 16), lsn=lsn)


def refuse_other(known: Origin, now: Origin, reached: int) -> None:
    """Raise CHAIN_BROKEN unless ``now`` is the source of the changes captured so far.

    ``reached`` is the LSN of the newest captured change.
    """
    if known.system and now.system != known.system:
        raise CdcError(
            ErrorKind.CHAIN_BROKEN,
            f"the source is cluster {now.system}, but the log comes from cluster {known.system}",
            reason=Reason.SOURCE_REPLACED,
            remedy=f"correct source.url; if the change is intended, run {NEW_EPOCH}",
        )
    if now.lsn < reached:
        raise LostChangesError(
            f"the source's WAL ends at {format_lsn(now.lsn)}, before the newest captured change at "
            f"{format_lsn(reached)}: the source was restored to an older state",
            reason=Reason.SOURCE_RESTORED,
        )
    if known.timeline and now.timeline != known.timeline:
        raise LostChangesError(
            f"the source is on timeline {now.timeline}, but the log comes from timeline "
            f"{known.timeline}: the source was recovered, or is a promoted standby",
            reason=Reason.SOURCE_PROMOTED,
            detail="it may lack changes that were captured earlier",
        )
