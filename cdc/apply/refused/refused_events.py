"""Makes records of the quarantine from refused rows of the log, for both ways of applying."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Protocol

from cdc.lake.records.quarantine import RefusedEvent
from cdc.tables import TableId


class LogRow(Protocol):
    """Stands for a row of the log with the ``reason`` of its refusal: a Spark row or a mapping."""

    def __getitem__(self, name: str, /) -> Any:  # noqa: ANN401 - a column of any type
        """Return the value of a column."""


def refused_events(rows: Iterable[LogRow], table: TableId, epoch: int) -> list[RefusedEvent]:
    """Return the events in the rows, refused now."""
    now = datetime.now(UTC)
    return [
        RefusedEvent(
            table=str(table),
            topic=row["topic"],
            partition=row["partition"],
            offset=row["offset"],
            key=_bytes(row["key"]),
            value=_bytes(row["value"]),
            value_schema_id=row["value_schema_id"],
            reason=row["reason"],
            quarantined_at=now,
            key_schema_id=row["key_schema_id"],
            headers=tuple((h["key"], _bytes(h["value"])) for h in row["headers"] or ()),
            epoch=epoch,
        )
        for row in rows
    ]


def _bytes(value: bytearray | bytes | None) -> bytes | None:
    return None if value is None else bytes(value)
