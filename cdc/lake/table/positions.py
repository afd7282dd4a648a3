"""How far a Delta table is: written with every commit of ours, read back from the newest one.

The position travels as ``userMetadata`` of the commit that holds the rows, so that table and
position cannot disagree (docs/decisions/0003). Optimize and vacuum carry it on, so the newest
commit always has one; a newest commit without it was made by somebody else.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.lake.table.noted_landings import Ranges

METADATA_CONF = "spark.databricks.delta.commitInfo.userMetadata"
MARK = "wal2lake"
KEY_PROPERTY = "wal2lake.key"
"""Of a Delta table: the columns of its key, as JSON."""
NOTHING = (0, -1)
"""Landing and offset where nothing is expired."""
UNREAD = -1
"""Number of the reading of a table that has to be read from the source before it can follow."""
LOST = -2
"""The same of one whose files are gone or another's, and which log and readings have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """What the newest commit of a table says of it."""

    epoch: int
    offset: int  # of the last change event applied; -1 before the first
    rows_applied: int = 0  # rows inserted, updated and deleted since the table was created
    refused: int = 0  # events of the table that went to quarantine
    snapshot_lsn: int | None = None  # of the snapshot whose reads are in the table
    note: int = 0  # id of the last note of a changed structure that is followed
    steps: int = 0  # of the next note, done already
    reading: int = 0  # number of the last reading of the source that is in the table
    # Events applied since the table was created, by operation.
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    reads: int = 0
    truncates: int = 0

    def metadata(self) -> str:
        return json.dumps({MARK: 1, **asdict(self)})


@dataclass(frozen=True, slots=True, kw_only=True)
class LandedPosition:
    """What the newest commit of the log says of it."""

    epoch: int
    landing: int  # number of the landing, 1 for the first
    offsets: dict[str, int]  # topic -> offset of the last event landed
    topic_ids: dict[str, str]  # topic -> Kafka's id of it, as far as known
    system: str = ""  # identifier of the source's cluster; empty where it was not known
    timeline: int = 0  # of its WAL
    expired: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By topic, the landing up to which its events are given up, and an offset that is not before
    the last of them (cdc/lake/records/expiry.py)."""
    noted: Ranges = ()
    """The landings that hold notes of changed structures, and perhaps others
    (cdc/lake/table/noted_landings.py)."""

    def metadata(self) -> str:
        return json.dumps({MARK: 1, **asdict(self)})


def open_table(path: str) -> DeltaTable | None:
    """The Delta table at the path, or None where there is none."""
    try:
        return DeltaTable(path)
    except TableNotFoundError:
        return None


def file_sizes(table: DeltaTable) -> list[int]:
    """Bytes of each data file of the version that is open; no data is read."""
    sizes: list[int] = table.get_add_actions()["size_bytes"].to_pylist()
    return sizes


def position(path: str) -> Position | None:
    """Position of the table at the path; None where there is no table.

    Raises CHAIN_BROKEN when the newest commit is not ours.
    """
    found = _newest_metadata(path)
    return None if found is None else Position(**found)


def landed_position(path: str) -> LandedPosition | None:
    """Position of the log at the path; None where there is no log yet."""
    found = _newest_metadata(path)
    if found is None:
        return None
    expired = {topic: (place[0], place[1]) for topic, place in found.get("expired", {}).items()}
    # A log of an earlier version does not say: any of its landings may hold some.
    noted = tuple((first, last) for first, last in found.get("noted", [(0, found["landing"])]))
    return LandedPosition(**{**found, "expired": expired, "noted": noted})


def _newest_metadata(path: str) -> dict[str, Any] | None:
    table = open_table(path)
    if table is None:
        return None
    return refuse_foreign(path, table.history(1)[0])


def refuse_foreign(path: str, commit: Mapping[str, Any]) -> dict[str, Any]:
    """What a commit of ours says; raises CHAIN_BROKEN for one of somebody else."""
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
            remedy="replay the table, or read it again: wal2lake replay, wal2lake resnapshot",
        )
    return metadata
