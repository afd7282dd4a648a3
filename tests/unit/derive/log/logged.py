"""A source's changes in transactions, as the connector writes them, in a log on the disk."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from cdc.derive.log.event import Place
from cdc.derive.log.log_reader import LogReader
from cdc.derive.log.topic_rows import Recent, TopicRows
from cdc.events import avro
from cdc.events.envelope import OLD_KEY
from cdc.events.schema import TableSchema, table_schema_from_avro
from cdc.events.transactions import END
from cdc.lake.records.readings import Reading
from cdc.lake.table.positions import LandedPosition
from cdc.land.arrow_rows import arrow_rows
from cdc.tables import TableMode
from tests.events.recorded import PREFIX, recording
from tests.events.source import SCHEMA_ID, TABLE, TOPIC, Row, Source, envelope
from tests.unit.land.test_arrow_rows import SOURCE

PLACEHOLDER = "no-value-of-the-source"
MARKERS = f"{PREFIX}.transaction"
MARKER_ID = 10
TEXTS = recording("tables").schemas
TOASTY = table_schema_from_avro(TEXTS[SCHEMA_ID], table=TABLE, key=("id",), mode=TableMode.KEYED)
BEGIN = Place(epoch=1, offset=-1, marker_offset=-1, reading=0)
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """Tells what one event did to the source: the oracle."""

    offset: int
    op: str
    key: int | None
    after: Row | None
    before: Row | None
    lsn: int
    committed_at: datetime | None


@dataclass(kw_only=True)
class LoggedSource(Source):
    """Adds transactions to a source; END markers stand in a topic of their own."""

    placeholder: str = PLACEHOLDER
    txid: int = 700
    lsn: int = 1000
    happened: list[Happened] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    markers: int = 0
    held: dict[int, Row] = field(default_factory=dict)
    events_of_it: int = 0

    @property
    def committed_at(self) -> datetime:
        """The clock goes back now and then, and stands still."""
        return NOON + timedelta(seconds=self.txid // 2 - 7 * (self.txid % 5 == 0))

    def commit(self) -> None:
        """End the transaction, and begin the next one."""
        if self.events_of_it:
            self._end({f"{TABLE}": self.events_of_it})
        self.txid, self.lsn, self.events_of_it = self.txid + 1, self.lsn + 100, 0

    def commit_elsewhere(self) -> None:
        """End a transaction that changed another table alone."""
        self._end({"shop.other": 1})
        self.commit()

    def _end(self, events: Mapping[str, int]) -> None:
        counts = [{"data_collection": name, "event_count": n} for name, n in events.items()]
        end = {
            "status": END,
            "id": f"{self.txid}:{self.lsn}",
            "event_count": sum(events.values()),
            "data_collections": counts,
            "ts_ms": int(self.committed_at.timestamp() * 1000),
        }
        self._record(MARKERS, self.markers, MARKER_ID, end)
        self.markers += 1

    def insert(self, key: int, n: int, value: int | None, op: str = "c") -> None:
        """Rows of a snapshot come before all others."""
        is_read = op == "r" and all(one.op == "r" for one in self.happened)
        super().insert(key, n, value, op="r" if is_read else "c")

    @property
    def place(self) -> Place:
        """Everything so far."""
        return Place(epoch=1, offset=self.offset - 1, marker_offset=self.markers - 1, reading=0)

    def _emit(self, op: str, before: Row | None = None, after: Row | None = None) -> None:
        is_read = op == "r"
        at = self.offset
        value = envelope(TABLE, op, before=before, after=after)
        value["source"]["lsn"] = 77 if is_read else self.lsn - 50
        value["transaction"]["id"] = f"{self.txid}:{self.lsn - 50}"
        if is_read:
            value["transaction"] = None
        else:
            self.events_of_it += 1
        self._happen(op, (after or before or {}).get("id"), is_read=is_read)
        self._record(TOPIC, at, SCHEMA_ID, value, moved=at in self.moved)
        self.log.append((at, value))
        self.offset += 1

    def _happen(self, op: str, key: int | None, *, is_read: bool) -> None:
        after = None if op in "dt" or key is None else dict(self.rows[key])
        self.happened.append(
            Happened(
                offset=self.offset,
                op=op,
                key=key,
                after=after,
                before=self.held.get(key) if op in "ud" and key is not None else None,
                lsn=77 if is_read else self.lsn,
                committed_at=None if is_read else self.committed_at,
            )
        )
        self.held = {number: dict(row) for number, row in self.rows.items()}

    def _record(
        self, topic: str, offset: int, number: int, value: Row, *, moved: bool = False
    ) -> None:
        headers = [{"key": OLD_KEY, "value": b"{}"}] if moved else []
        message = avro.encode(TEXTS[number], number, value)
        record = {"topic": topic, "partition": 0, "offset": offset, "value": message}
        self.records.append({**record, "headers": headers})


def landed(path: Path, *landings: Sequence[Mapping[str, Any]]) -> None:
    """Append records to the log, each landing with a number of its own."""
    for number, records in enumerate(landings, 1):
        if records:
            rows = pa.Table.from_pylist([dict(one) for one in records], schema=SOURCE)
            place = LandedPosition(epoch=1, landing=number, offsets={}, topic_ids={})
            write_deltalake(
                str(path),
                arrow_rows(rows, number, NOON),
                mode="append",
                commit_properties=CommitProperties({"userMetadata": place.metadata()}),
            )


def parts(
    records: Sequence[Mapping[str, Any]], random: Random
) -> list[Sequence[Mapping[str, Any]]]:
    """Return the records in a few landings."""
    ends = sorted(random.sample(range(len(records) + 1), min(3, len(records))))
    return [records[a:b] for a, b in zip([0, *ends], [*ends, len(records)], strict=True)]


def recent(records: Sequence[Mapping[str, Any]], after: Mapping[str, int]) -> Recent:
    rows = pa.Table.from_pylist([dict(one) for one in records], schema=SOURCE)
    return Recent(events=arrow_rows(rows, 1, NOON), after=after)


def reader(rows: TopicRows, readings: Sequence[Reading] = ()) -> LogReader:
    return LogReader(
        rows=rows,
        prefix=PREFIX,
        placeholder=PLACEHOLDER,
        schemas_of=schemas,
        readings_of=partial(_of, readings),
    )


def schemas(ids: Iterable[int]) -> dict[int, str]:
    return {number: TEXTS[number] for number in ids if number in TEXTS}


def whole(row: Row | None, schema: TableSchema = TOASTY) -> list[Any] | None:
    return None if row is None else [row[name] for name in schema.names]


def _of(readings: Sequence[Reading], _: str) -> Sequence[Reading]:
    return readings
