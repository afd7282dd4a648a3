"""The quarantine: every event that could not be decoded or kept exactly, with its position."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final

import pyarrow as pa
from deltalake import QueryBuilder, write_deltalake

from cdc.lake.control_tables import optimize
from cdc.lake.progress import open_table

SCHEMA: Final = pa.schema(
    [
        ("table", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("value_schema_id", pa.int32()),
        ("reason", pa.string()),
        ("quarantined_at", pa.timestamp("us", "UTC")),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedEvent:
    """One event as it was found in the log, and why it is not in its table."""

    table: str  # schema.name; empty for the topic of transaction markers
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    value_schema_id: int | None
    reason: str
    quarantined_at: datetime


class Quarantine:
    """The Delta table of refused events; written by the job alone."""

    def __init__(self, path: str) -> None:
        self.path = path

    def add(self, events: list[RefusedEvent]) -> None:
        """Record the events; one that is recorded already, by its position, is left as it is.

        Called before the position of the table moves past the events: a crash between the two
        repeats the call.
        """
        if not events:
            return
        rows = [asdict(event) for event in events]
        source = pa.Table.from_pylist(rows, schema=SCHEMA)
        table = open_table(self.path)
        if table is None:
            write_deltalake(self.path, source)
            return
        same = 't.topic = s.topic AND t."offset" = s."offset"'
        merger = table.merge(source, predicate=same, source_alias="s", target_alias="t")
        merger.when_not_matched_insert_all().execute()
        optimize(table)

    def rows(self) -> list[RefusedEvent]:
        """Everything refused, by topic and offset."""
        table = open_table(self.path)
        if table is None:
            return []
        query = 'SELECT * FROM q ORDER BY topic, "offset"'
        found = pa.table(QueryBuilder().register("q", table).execute(query).read_all())
        return [RefusedEvent(**row) for row in found.to_pylist()]
