"""The epochs of a lake: one row each time the chain of slot, position and stream began anew.

Between two epochs changes are missing, and nothing says which. What the topics held when one
began is left behind: a transaction there may have lost its end, and no cut waits for it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa
from deltalake import QueryBuilder, write_deltalake

from cdc.lake.table.positions import open_table
from cdc.tables import STRUCTURE, TableId

FIRST: Final = 1
"""The epoch of a lake that has recorded none: it began with the first snapshot."""

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
    """One epoch that began after the first."""

    number: int
    name: str  # of the pipeline: its topics begin with it
    began_at: datetime
    reason: str  # what was broken
    lsn: int  # of the source when it began; says nothing of earlier epochs
    left_behind: Mapping[str, int]  # topic -> last offset of before; -1 for an empty topic
    topic_ids: Mapping[str, str] = field(default_factory=dict)  # Kafka's own, of its topics
    system: str = ""  # identifier of the source's cluster
    timeline: int = 0  # of its WAL

    def left(self, topic: str) -> int:
        """The last offset of the topic that is left behind; -1 where nothing is."""
        return self.left_behind.get(topic, -1)

    def left_of(self, table: str, unknown: int = -1) -> int:
        """The same of the topic of a table, by its name with the schema."""
        return self.left_behind.get(TableId.parse(table).topic(self.name), unknown)

    @property
    def left_of_markers(self) -> int:
        return self.left(f"{self.name}.transaction")

    @property
    def left_of_notes(self) -> int:
        return self.left(STRUCTURE.topic(self.name))


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
    """Record the next epoch.

    One that began with the same offsets and source is returned as it is: nothing has come in it,
    so the attempt before this one was interrupted.
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
    write_deltalake(path, rows, mode="append", schema_mode="merge")
    return epoch


def last(path: str) -> Epoch | None:
    """The newest epoch; None while the lake is in its first."""
    table = open_table(path)
    if table is None:
        return None
    query = "SELECT * FROM epochs ORDER BY number DESC LIMIT 1"
    found = pa.table(QueryBuilder().register("epochs", table).execute(query).read_all())
    rows = found.to_pylist()
    return _epoch(rows[0]) if rows else None


def _begins_as(before: Epoch, epoch: Epoch) -> bool:
    kept = ("left_behind", "topic_ids", "system", "timeline")
    return all(getattr(before, name) == getattr(epoch, name) for name in kept)


def _epoch(row: Mapping[str, Any]) -> Epoch:
    """Rows of earlier versions lack what came later."""
    known = {name: value for name, value in row.items() if value is not None}
    maps = {name: dict(known.get(name, {})) for name in ("left_behind", "topic_ids")}
    return Epoch(**{**known, **maps})


def number(epoch: Epoch | None) -> int:
    return FIRST if epoch is None else epoch.number
