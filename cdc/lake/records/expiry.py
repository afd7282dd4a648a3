"""Finds the events of the log that are no longer needed, and the tables that need an image.

The ledger decides. Every cut in it can be replayed, so the log of each table is kept from the
newest whole reading or image that the oldest cut can start from. This also keeps events that are
not applied yet, or that no replay has confirmed since: an image proves that one did.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from cdc.lake.records.ledger import LedgerRow, TableEntry
from cdc.lake.records.readings import Reading, base_of, readings_at
from cdc.tables import TableState

Expired = Mapping[str, tuple[int, int]]
"""By topic: the last expired landing, and the highest offset that it or earlier ones may hold."""


def expired_places(
    first: LedgerRow,
    last: LedgerRow,
    readings: Sequence[Reading],
    *,
    topic: Callable[[str], str],
    marker_topic: str,
) -> dict[str, tuple[int, int]]:
    """Return what neither the cuts from ``first`` on nor the tables at ``last`` need of the log.

    ``topic`` returns the topic of a table (``schema.name``). Structure notes never expire. Topics
    of which nothing expires are left out.
    """
    places = {marker_topic: (first.landing_floor, first.marker_offset)}
    for entry in first.tables:
        base, now = base_at(first, entry, readings), last.entry(entry.table)
        if base is not None and now is not None and now.offset >= base.position.offset:
            landing = min(base.landing, first.landing_floor)
            places[topic(entry.table)] = (landing, base.position.offset)
    return {name: place for name, place in places.items() if place[0] > 0}


def base_at(row: LedgerRow, entry: TableEntry, readings: Sequence[Reading]) -> Reading | None:
    """Return the whole reading or image that a replay of the table to the cut begins with.

    None if there is none of the cut's own epoch, or the table awaits a reading.
    """
    if entry.reading < 0:
        return None  # a replay cannot restore this table
    mine = [reading for reading in readings if reading.table == entry.table]
    replayed = base_of(readings_at(mine, row, entry.table), entry.offset, row.epoch)
    whole = bool(replayed) and replayed[0].whole and replayed[0].position.epoch == row.epoch
    return replayed[0] if whole else None


def tables_due_for_image(
    first: LedgerRow,
    last: LedgerRow,
    readings: Sequence[Reading],
    *,
    now: datetime,
    retention: timedelta,
) -> list[str]:
    """Return the tables that need a new image, so that older events can expire.

    These are the tables that stream at the cut, have no refused events, and have events since
    their last whole reading or image, which was made at least ``retention`` ago.
    """
    if last.lsn is None:
        return []
    tables = []
    for entry in last.tables:
        base = base_at(last, entry, readings)
        since = first.published_at if base is None else base.made_at
        quiet = base is not None and base.position.offset >= entry.offset
        if _is_whole(entry) and not quiet and now - since >= retention:
            tables.append(entry.table)
    return tables


def _is_whole(entry: TableEntry) -> bool:
    return entry.state == TableState.STREAMING.value and not entry.refused and entry.reading >= 0
