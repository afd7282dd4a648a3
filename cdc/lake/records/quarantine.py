"""Keep the quarantine: events that could not be decoded or stored exactly, by topic and offset.

An event is settled when its row is right again (retried), or when an operator gave the event up
(discarded); its row records who settled it, when and why. Only ``forget`` removes events.
"""

import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, Schema, write_deltalake
from deltalake.table import TableMerger

from cdc.events.values.sql_text import fusion_name, fusion_string
from cdc.failpoints import Failpoint, reach
from cdc.lake.files.delta import storage_options
from cdc.lake.files.file_store import StoreError
from cdc.lake.table.known_commit import known_commit
from cdc.lake.table.positions import open_table
from cdc.lake.upkeep.control_tables import optimize
from cdc.lake.upkeep.erasure import begin_anew, delete_older

HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
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
        ("key_schema_id", pa.int32()),
        ("headers", HEADERS),
        ("epoch", pa.int64()),
        ("state", pa.string()),
        ("settled_at", pa.timestamp("us", "UTC")),
        ("settled_by", pa.string()),
        ("note", pa.string()),
    ]
)
_PLACE: Final = pa.schema([("topic", pa.string()), ("offset", pa.int64()), ("epoch", pa.int64())])
# A row of an older table has no epoch; it matches every epoch.
_SAME: Final = (
    't.topic = s.topic AND t."offset" = s."offset" AND coalesce(t.epoch, s.epoch) = s.epoch'
)
_OPEN: Final = "coalesce({column}, 'open') = 'open'"


class EventState(Enum):
    """Says what became of a refused event."""

    OPEN = "open"  # its row may differ from the source
    RETRIED = "retried"  # its row was read from the source again, later than the event
    DISCARDED = "discarded"  # an operator gave it up; the note says why


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedEvent:
    """Holds one event as it is in the log, why it was refused, and what became of it."""

    table: str  # schema.name; empty for the topic of transaction markers
    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    value_schema_id: int | None
    reason: str
    quarantined_at: datetime
    key_schema_id: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    epoch: int = 0  # 0: recorded before epochs existed
    state: EventState = EventState.OPEN
    settled_at: datetime | None = None
    settled_by: str = ""
    note: str = ""


class Quarantine:
    """Keeps the Delta table of refused events; only the job writes it, by any of its threads."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()  # Delta would report a conflict between two writers

    def add(self, events: Sequence[RefusedEvent]) -> None:
        """Record the events; leave those alone that are recorded already, by their position.

        Called before the position of the table moves past the events: after a crash between the
        two, the call is repeated.
        """
        if not events:
            return
        source = pa.Table.from_pylist([_row(event) for event in events], schema=SCHEMA)
        with self._lock:
            reach(Failpoint.BEFORE_QUARANTINE_ADD)
            self._insert(source)
            reach(Failpoint.AFTER_QUARANTINE_ADD)

    def _insert(self, source: pa.Table) -> None:
        table = self._writable()
        if table is None:
            with known_commit(self.path) as known:
                write_deltalake(
                    self.path,
                    source,
                    commit_properties=known,
                    storage_options=storage_options(self.path),
                )
            return
        with known_commit(self.path, table=table) as known:
            _merger(table, source, known).when_not_matched_insert_all().execute()
        optimize(self.path, table)

    def settle(
        self, events: Sequence[RefusedEvent], *, state: EventState, by: str, note: str, at: datetime
    ) -> int:
        """Settle those of the events that are open, and return how many these were.

        Events that are settled already stay as they are, so the call can be repeated.
        """
        places = [{name: getattr(event, name) for name in _PLACE.names} for event in events]
        source = pa.Table.from_pylist(places, schema=_PLACE)
        texts = {"state": state.value, "settled_by": by, "note": note}
        updates = {name: fusion_string(text) for name, text in texts.items()}
        updates["settled_at"] = f"CAST({fusion_string(at.isoformat())} AS TIMESTAMP)"
        with self._lock:
            table = self._writable() if places else None
            if table is None:
                return 0
            still_open = _OPEN.format(column="t.state")
            reach(Failpoint.BEFORE_QUARANTINE_SETTLE)
            settled: int | None = None
            with known_commit(self.path) as known:
                merger = _merger(table, source, known)
                metrics = merger.when_matched_update(updates, predicate=still_open).execute()
                settled = int(metrics["num_target_rows_updated"])
            reach(Failpoint.AFTER_QUARANTINE_SETTLE)
            if settled is None:
                raise StoreError("events are settled, but their number was lost: repeat it")
            optimize(self.path, table)
        return settled

    def forget(self, table: str) -> None:
        """Remove all events of a table (``schema.name``), from older versions too.

        Repeated after a crash, it does the rest.
        """
        with self._lock:
            if (opened := open_table(self.path)) is None:
                return
            reach(Failpoint.BEFORE_QUARANTINE_FORGET)
            with known_commit(self.path) as known:
                opened.delete(f'"table" = {fusion_string(table)}', commit_properties=known)
            reach(Failpoint.AFTER_QUARANTINE_FORGET)
            delete_older(self.path, begin_anew(self.path).time)

    def open_count(self, table: str) -> int:
        """Return the number of open events of a table (``schema.name``)."""
        opened = open_table(self.path)
        if opened is None:
            return 0
        where = _where(opened, table, only_open=True)
        query = f"SELECT count(*) AS n FROM q{where}"  # noqa: S608 - quoted
        return int(_query(opened, query)[0]["n"])

    def rows(
        self, table: str | None = None, *, only_open: bool = False, with_values: bool = True
    ) -> list[RefusedEvent]:
        """Return the events of one table or of all, ordered by topic, offset and epoch.

        With ``with_values=False`` values are None, and the column, which may be large, is not read.
        """
        opened = open_table(self.path)
        if opened is None:
            return []
        columns = _names(opened) & set(SCHEMA.names) - (set() if with_values else {"value"})
        listed = ", ".join(map(fusion_name, sorted(columns)))
        where = _where(opened, table, only_open=only_open)
        query = f"SELECT {listed} FROM q{where}"  # noqa: S608 - quoted
        events = (_event(row) for row in _query(opened, query))
        return sorted(events, key=lambda event: (event.topic, event.offset, event.epoch))

    def _writable(self) -> DeltaTable | None:
        """Open the table, and add columns that a table of an earlier version lacks."""
        table = open_table(self.path)
        if table is None:
            return None
        present = _names(table)
        missing = [field for field in Schema.from_arrow(SCHEMA).fields if field.name not in present]
        if missing:
            with known_commit(self.path, table=table) as known:
                table.alter.add_columns(missing, commit_properties=known)
        return table


def _merger(
    table: DeltaTable, source: pa.Table, properties: CommitProperties | None
) -> TableMerger:
    return table.merge(
        source,
        predicate=_SAME,
        source_alias="s",
        target_alias="t",
        commit_properties=properties,
    )


def _row(event: RefusedEvent) -> dict[str, Any]:
    headers = [{"key": name, "value": value} for name, value in event.headers]
    return {**asdict(event), "headers": headers, "state": event.state.value}


def _names(table: DeltaTable) -> set[str]:
    return {field.name for field in table.schema().fields}


def _where(opened: DeltaTable, table: str | None, *, only_open: bool) -> str:
    conditions = [f'"table" = {fusion_string(table)}'] if table is not None else []
    if only_open and "state" in _names(opened):
        conditions.append(_OPEN.format(column="state"))
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _query(table: DeltaTable, query: str) -> list[dict[str, Any]]:
    result = QueryBuilder().register("q", table).execute(query).read_all()
    return list(pa.table(result).to_pylist())


def _event(row: dict[str, Any]) -> RefusedEvent:
    """A row of an older table has no state; it is open."""
    headers = tuple((header["key"], header["value"]) for header in row.pop("headers", None) or ())
    row = {"value": None, **{name: value for name, value in row.items() if value is not None}}
    row["state"] = EventState(row.get("state", EventState.OPEN.value))
    missing = {"key": None, "value_schema_id": None}
    return RefusedEvent(**{**missing, **row, "headers": headers})
