"""Read transaction markers: where a transaction ends, and its number of events per topic.

The id of an END marker is ``txid:lsn``; the LSN is the end of the commit and rises in commit order.
BEGIN markers and events have the same txid with other suffixes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from cdc.errors import CdcError, ErrorKind
from cdc.tables import HEARTBEAT

BEGIN = "BEGIN"
END = "END"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """Holds a record of the transaction topic; ``counts`` is events by topic, empty for a BEGIN."""

    txid: int
    lsn: int
    status: str
    event_count: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    committed_at: datetime | None = None


def txid_of(transaction_id: str) -> int:
    """Return the part of ``txid:lsn`` that all records of one transaction share."""
    return int(transaction_id.partition(":")[0])


def marker(decoded: Mapping[str, Any], *, prefix: str) -> Marker:
    """Return the marker in a decoded record, or raise BAD_EVENT if it is not one.

    ``prefix`` is that of the topics' names.
    """
    try:
        txid, _, lsn = str(decoded["id"]).partition(":")
        return Marker(
            txid=int(txid),
            lsn=int(lsn),
            status=_status(decoded["status"]),
            event_count=decoded.get("event_count") or 0,
            counts={
                f"{prefix}.{entry['data_collection']}": int(entry["event_count"])
                for entry in decoded.get("data_collections") or ()
            },
            committed_at=datetime.fromtimestamp(decoded["ts_ms"] / 1000, tz=UTC),
        )
    except (KeyError, TypeError, ValueError):
        raise CdcError(
            ErrorKind.BAD_EVENT,
            "a record of the transaction topic is not a transaction marker",
            remedy="stop any other program that writes to the connector's topics",
        ) from None


def is_heartbeat(end: Marker, prefix: str) -> bool:
    """Return whether a transaction is a heartbeat: one event, in ``wal2lake.heartbeat``.

    A barrier has two (cdc/source/server/barrier.py).
    """
    return end.status == END and end.counts == {HEARTBEAT.topic(prefix): 1}


def is_marker_schema(schema_json: str) -> bool:
    """Return whether a writer's schema is that of the transaction topic's values."""
    try:
        names = {field["name"] for field in json.loads(schema_json)["fields"]}
    except (KeyError, TypeError, ValueError):
        return False
    return names >= {"status", "id", "event_count", "data_collections", "ts_ms"}


def _status(value: str) -> str:
    if value not in {BEGIN, END}:
        raise ValueError(value)
    return value
