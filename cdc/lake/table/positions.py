"""Read a Delta table's position from its newest commit: each of our commits is written with one.

The position is the ``userMetadata`` of the commit that holds the rows, so table and position cannot
disagree (docs/decisions/0003). Optimize and vacuum repeat it, so the newest commit always has one;
a newest commit without a position was not made by wal2lake.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.lake.files.delta import delta_table
from cdc.lake.table.noted_landings import Ranges

METADATA_CONF = "spark.databricks.delta.commitInfo.userMetadata"
MARK = "wal2lake"
KEY_PROPERTY = "wal2lake.key"
"""Of a Delta table: the columns of its key, as JSON."""
MEASURED_PROPERTY = "wal2lake.measured"
"""Of a Delta table: further columns that readers can skip files by, as JSON."""
NOTHING = (0, -1)
"""Expired landing and offset of a topic of which nothing has expired."""
UNREAD = -1
"""Reading number of a table that has to be read from the source before it can follow."""
LOST = -2
"""Reading number of a table whose files are missing or foreign, but can be rebuilt from log and
readings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Holds the position of a table, as its newest commit has it."""

    epoch: int
    offset: int  # of the last change event applied; -1 before the first
    rows_applied: int = 0  # rows inserted, updated and deleted since the table was created
    refused: int = 0  # events of the table in quarantine
    snapshot_lsn: int | None = None  # LSN of the snapshot whose reads are in the table
    note: int = 0  # id of the last structure note that the table follows
    steps: int = 0  # steps of the next note that are already applied
    reading: int = 0  # number of the last reading in the table, or UNREAD or LOST
    # Events applied since the table was created, by operation.
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    reads: int = 0
    truncates: int = 0

    def metadata(self) -> str:
        """Return the JSON text for a commit's ``userMetadata``."""
        return json.dumps({MARK: 1, **asdict(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class LandedPosition:
    """Holds the position of the log, as its newest commit has it."""

    epoch: int
    landing: int  # number of the last landing, 1 for the first
    offsets: dict[str, int]  # topic -> offset of the last event landed
    topic_ids: dict[str, str]  # topic -> Kafka's topic id, where known
    system: str = ""  # system identifier of the source; empty if unknown
    timeline: int = 0  # timeline of the source's WAL
    expired: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Topic -> last expired landing, and an offset at or after the last expired event
    (cdc/lake/records/expiry.py)."""
    noted: Ranges = ()
    """Ranges of landings that hold structure notes (cdc/lake/table/noted_landings.py)."""

    def metadata(self) -> str:
        """Return the JSON text for a commit's ``userMetadata``."""
        return json.dumps({MARK: 1, **asdict(self)})


def open_table(path: str) -> DeltaTable | None:
    """Return the Delta table at the path; None if there is none."""
    try:
        return delta_table(path)
    except TableNotFoundError:
        return None


def file_sizes(table: DeltaTable) -> list[int]:
    """Return the size in bytes of each data file of the open version; no data is read."""
    return list(table.get_add_actions()["size_bytes"].to_pylist())


def position(path: str) -> Position | None:
    """Return the position of the table at the path; None if there is no table.

    Raises CHAIN_BROKEN if the newest commit is not ours.
    """
    metadata = _newest_metadata(path)
    return None if metadata is None else Position(**metadata)


def landed_position(path: str) -> LandedPosition | None:
    """Return the position of the log at the path; None if there is no log yet.

    Raises CHAIN_BROKEN if the newest commit is not ours.
    """
    metadata = _newest_metadata(path)
    if metadata is None:
        return None
    expired = {topic: (place[0], place[1]) for topic, place in metadata.get("expired", {}).items()}
    # A log of an earlier version has no ranges: any of its landings may hold notes.
    everything = [(0, metadata["landing"])]
    noted = tuple((first, last) for first, last in metadata.get("noted", everything))
    return LandedPosition(**{**metadata, "expired": expired, "noted": noted})


def _newest_metadata(path: str) -> dict[str, Any] | None:
    table = open_table(path)
    if table is None:
        return None
    return refuse_foreign(path, table.history(1)[0])


def refuse_foreign(path: str, commit: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a commit of ours, given as an entry of the table's history.

    Raises CHAIN_BROKEN for a foreign commit.
    """
    try:
        metadata = json.loads(commit.get("userMetadata") or "{}")
    except ValueError:
        metadata = {}
    if not isinstance(metadata, dict) or metadata.pop(MARK, None) != 1:
        operation = commit.get("operation", "unknown")
        raise CdcError(
            ErrorKind.CHAIN_BROKEN,
            f"version {commit['version']} of {path} was not written by wal2lake",
            reason=Reason.TABLE_RESTORED if operation == "RESTORE" else Reason.TABLE_EDITED,
            detail=f"its operation is {operation}",
            remedy="rebuild the table with wal2lake replay, or read it again with wal2lake "
            "resnapshot",
        )
    return metadata
