"""Expiry: what of the log no cut and no table needs any more, and when a table needs an image.

The ledger decides. A cut that it lists can be replayed, so of each table the log is kept from the
last whole reading or image on that the oldest cut begins with. What somebody may still have to
apply, or what has not been replayed since, is thereby kept: an image is the proof that it was.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from cdc.lake.records.ledger import LedgerRow, TableEntry
from cdc.lake.records.readings import Reading, base_of, readings_at
from cdc.tables import TableState

Expired = Mapping[str, tuple[int, int]]
"""By topic: every landing up to here, and the last offset that may have been in them."""


def expired(
    first: LedgerRow,
    last: LedgerRow,
    readings: Sequence[Reading],
    *,
    topic: Callable[[str], str],
    marker_topic: str,
) -> dict[str, tuple[int, int]]:
    """What of the log the cuts from ``first`` on, and the tables at ``last``, do not need.

    ``topic`` gives the topic of a table (``schema.name``). The notes of structures are all kept.
    """
    found = {marker_topic: (first.landing_floor, first.marker_offset)}
    for entry in first.tables:
        base, now = base_at(first, entry, readings), last.entry(entry.table)
        if base is not None and now is not None and now.offset >= base.position.offset:
            landing = min(base.landing, first.landing_floor)
            found[topic(entry.table)] = (landing, base.position.offset)
    return {name: place for name, place in found.items() if place[0] > 0}


def base_at(row: LedgerRow, entry: TableEntry, readings: Sequence[Reading]) -> Reading | None:
    """The whole reading or image that a replay of the table to the cut begins with."""
    if entry.reading < 0:
        return None  # nothing is known that a replay could give
    mine = [reading for reading in readings if reading.table == entry.table]
    found = base_of(readings_at(mine, row, entry.table), entry.offset, row.epoch)
    whole = bool(found) and found[0].whole and found[0].position.epoch == row.epoch
    return found[0] if whole else None


def due(
    first: LedgerRow,
    last: LedgerRow,
    readings: Sequence[Reading],
    *,
    now: datetime,
    retention: timedelta,
) -> list[str]:
    """The tables of which an image is to be made, so that older events can go.

    Those that stand at the cut, with nothing in quarantine, and whose log since the last whole
    reading or image reaches back further than the retention.
    """
    if last.lsn is None:
        return []
    found = []
    for entry in last.tables:
        base = base_at(last, entry, readings)
        since = first.published_at if base is None else base.made_at
        quiet = base is not None and base.position.offset >= entry.offset
        if _is_whole(entry) and not quiet and now - since >= retention:
            found.append(entry.table)
    return found


def _is_whole(entry: TableEntry) -> bool:
    return entry.state == TableState.STREAMING.value and not entry.refused and entry.reading >= 0
