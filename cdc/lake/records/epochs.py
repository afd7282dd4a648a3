"""Record the epochs of a lake: a row each time the chain of slot, position and stream began anew.

Between two epochs changes are missing, and nothing records which. Events that were in the topics
when an epoch began are left behind: a transaction among them may have lost its end, so no cut
waits for it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
from deltalake import QueryBuilder, write_deltalake

from cdc.lake.files.delta import storage_options
from cdc.lake.table.known_commit import known_commit
from cdc.lake.table.positions import open_table
from cdc.tables import STRUCTURE, TableId

FIRST: Final = 1
"""Number of the epoch that begins with the first snapshot; it has no row."""

SCHEMA: Final = pa.schema(
    [
        ("number", pa.int64()),
        ("name", pa.string()),
        ("began_at", pa.timestamp("us", "UTC")),
        ("reason", pa.string()),
        ("lsn", pa.int64()),
        ("left_behind", pa.map_(pa.string(), pa.int64())),
        ("topic_ids", pa.map_(pa.string(), pa.string())),
        ("system", pa.string()),
        ("timeline", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """Describes one epoch that began after the first."""

    number: int
    name: str  # of the pipeline; prefix of its topics
    began_at: datetime
    reason: str  # what was broken
    lsn: int  # of the source when the epoch began; not comparable with earlier epochs
    left_behind: Mapping[str, int]  # topic -> last offset before the epoch; -1 if it was empty
    topic_ids: Mapping[str, str] = field(default_factory=dict)  # topic -> Kafka's topic id
    system: str = ""  # system identifier of the source
    timeline: int = 0  # timeline of the source's WAL

    def left_behind_in(self, topic: str) -> int:
        """Return the last offset of the topic that is left behind; -1 if there is none."""
        return self.left_behind.get(topic, -1)

    def left_behind_of_table(self, table: str, unknown: int = -1) -> int:
        """Return the last offset left behind in the topic of a table (``schema.name``).

        Returns ``unknown`` for a topic that the epoch does not list.
        """
        return self.left_behind.get(TableId.parse(table).topic(self.name), unknown)

    @property
    def left_behind_markers(self) -> int:
        """Return the last offset left behind in the topic of transaction markers."""
        return self.left_behind_in(f"{self.name}.transaction")

    @property
    def left_behind_notes(self) -> int:
        """Return the last offset left behind in the topic of structure notes."""
        return self.left_behind_in(STRUCTURE.topic(self.name))


def begin(
    path: str,
    *,
    name: str,
    reason: str,
    lsn: int,
    left_behind: Mapping[str, int],
    topic_ids: Mapping[str, str],
    system: str,
    timeline: int,
) -> Epoch:
    """Record the next epoch in the table at ``path``, and return it.

    If the newest epoch began with the same offsets and source, no events have arrived in it: the
    previous attempt was interrupted, and that epoch is returned instead.
    """
    before = last(path)
    epoch = Epoch(
        number=FIRST + 1 if before is None else before.number + 1,
        name=name,
        began_at=datetime.now(UTC),
        reason=reason,
        lsn=lsn,
        left_behind=dict(left_behind),
        topic_ids=dict(topic_ids),
        system=system,
        timeline=timeline,
    )
    if before is not None and _begins_as(before, epoch):
        return before
    rows = pa.Table.from_pylist([asdict(epoch)], schema=SCHEMA)
    # A table of an earlier version has fewer columns.
    with known_commit(path) as known:
        write_deltalake(
            path,
            rows,
            mode="append",
            schema_mode="merge",
            commit_properties=known,
            storage_options=storage_options(path),
        )
    return epoch


def last(path: str) -> Epoch | None:
    """Return the newest epoch; None while the lake is in its first."""
    table = open_table(path)
    if table is None:
        return None
    query = "SELECT * FROM epochs ORDER BY number DESC LIMIT 1"
    result = QueryBuilder().register("epochs", table).execute(query).read_all()
    rows = pa.table(result).to_pylist()
    return _epoch(rows[0]) if rows else None


def _begins_as(before: Epoch, epoch: Epoch) -> bool:
    compared = ("left_behind", "topic_ids", "system", "timeline")
    return all(getattr(before, name) == getattr(epoch, name) for name in compared)


def _epoch(row: Mapping[str, Any]) -> Epoch:
    """Rows of earlier versions lack newer columns."""
    present = {name: value for name, value in row.items() if value is not None}
    maps = {name: dict(present.get(name, {})) for name in ("left_behind", "topic_ids")}
    return Epoch(**{**present, **maps})


def number(epoch: Epoch | None) -> int:
    """Return the number of the epoch; None means the first one."""
    return FIRST if epoch is None else epoch.number
