"""The ledger: one row per cut, written after the last table of the cut is at its position."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, write_deltalake

from cdc.failpoints import Failpoint, reach
from cdc.lake.control_tables import RETENTION_HOURS, optimize
from cdc.lake.progress import MARK, open_table

TABLE_ENTRY: Final = pa.struct(
    [
        ("table", pa.string()),
        ("path", pa.string()),
        ("version", pa.int64()),
        ("offset", pa.int64()),
        ("state", pa.string()),
        ("reason", pa.string()),
        ("rows_applied", pa.int64()),
        ("refused", pa.int64()),
        ("reading", pa.int64()),
        ("inserts", pa.int64()),
        ("updates", pa.int64()),
        ("deletes", pa.int64()),
        ("reads", pa.int64()),
        ("truncates", pa.int64()),
    ]
)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SCHEMA: Final = pa.schema(
    [
        ("cut", pa.int64()),
        ("epoch", pa.int64()),
        ("lsn", pa.int64()),
        ("committed_at", pa.timestamp("us", "UTC")),
        ("published_at", pa.timestamp("us", "UTC")),
        ("transactions", pa.int64()),
        ("request", pa.string()),
        ("covers_lsn", pa.int64()),
        ("marker_offset", pa.int64()),
        ("landing_floor", pa.int64()),
        ("notes_offset", pa.int64()),
        ("tables", pa.list_(TABLE_ENTRY)),
        ("topic_ids", pa.map_(pa.string(), pa.string())),
        ("snapshot_end", pa.int64()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """One table at a cut."""

    table: str
    path: str
    version: int  # Delta version that holds the cut
    offset: int  # last offset of its topic that belongs to the cut; -1: none yet
    state: str  # TableState
    reason: str = ""
    rows_applied: int = 0
    refused: int = 0
    reading: int = 0  # number of the last reading of the source in it; -1 where one is awaited
    # Events applied since the table was made; a changed key is a delete and an insert.
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    reads: int = 0  # of the first snapshot
    truncates: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """One cut."""

    cut: int
    epoch: int
    lsn: int | None  # end of the last commit inside; None while only a snapshot is applied
    committed_at: datetime | None  # source time of that commit
    published_at: datetime
    transactions: int  # between the cut before and this one
    request: str | None = None  # the verification that asked for this cut
    covers_lsn: int | None = None  # no commit lies between ``lsn`` and this position
    marker_offset: int = -1  # last offset of the topic of transaction markers inside
    landing_floor: int = 0  # every landing up to here is wholly inside
    notes_offset: int = -1  # last offset of the topic of changed structures inside
    tables: tuple[TableEntry, ...] = field(default=())
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Kafka's own id of every topic that the offsets are of."""
    snapshot_end: int | None = None
    """A place in the WAL that is not before the end of the first snapshot's reading."""

    def reaches(self, lsn: int, epoch: int) -> bool:
        """Whether it holds every commit up to an LSN of the epoch, or is of a later one.

        LSNs of two epochs are not comparable: between them the source may have been restored.
        """
        return self.epoch >= epoch and self.lsn is not None and self.lsn >= lsn

    def entry(self, table: str) -> TableEntry | None:
        return next((entry for entry in self.tables if entry.table == table), None)


_PROPERTIES: Final = {
    "delta.checkpointInterval": "50",
    # A commit for each cut: delta-rs removes older ones by itself.
    "delta.logRetentionDuration": f"interval {RETENTION_HOURS} hours",
}


class Ledger:
    """The Delta table of cuts; written by the job alone, read by anyone."""

    def __init__(self, path: str, *, kept: timedelta | None = None) -> None:
        """``kept`` is for the job: how long a cut stays; without it, for ever."""
        self.path = path
        self._kept = kept
        self._table: DeltaTable | None = None

    def append(self, row: LedgerRow) -> None:
        """Publish a cut. The row stands in the commit's metadata too, for a cheap ``last``."""
        columns = {name: [value] for name, value in asdict(row).items()}
        mark = _mark(row)
        write_deltalake(
            self.path,
            pa.table(columns, schema=SCHEMA),
            mode="append",
            schema_mode="merge",  # a ledger of an earlier version has fewer columns
            configuration=_PROPERTIES,
            commit_properties=mark,
        )
        table = self._opened()
        if table is not None and optimize(table, mark) and self._kept is not None:
            self._expire(row.published_at - self._kept, mark)

    def _expire(self, time: datetime, mark: CommitProperties) -> None:
        """Drop the cuts of before the one that was the newest at the time.

        Where the rows lie in one file, so that no more than that is rewritten.
        """
        micros = (time - EPOCH) // timedelta(microseconds=1)
        published = self._where(f"published_at > to_timestamp_micros({micros:d})", "LIMIT 1")
        oldest, later, table = self.first(), next(published, None), self._opened()
        if table is None or oldest is None or later is None or oldest.cut >= later.cut - 1:
            return
        reach(Failpoint.BEFORE_LEDGER_EXPIRY)
        table.delete(f"cut < {later.cut - 1:d}", commit_properties=mark)
        reach(Failpoint.AFTER_LEDGER_EXPIRY)

    def first(self) -> LedgerRow | None:
        """The oldest cut that is kept; None before the first."""
        return next(self._where("true", "LIMIT 1"), None)

    def last(self) -> LedgerRow | None:
        """The newest cut, from the newest commit's metadata; None before the first."""
        table = self._opened()
        if table is None:
            return None
        text = table.history(1)[0].get(MARK)
        return None if text is None else _from_json(str(text))

    def rows(self, *, after: int = 0) -> Iterator[LedgerRow]:
        """Every cut with a number above ``after``, in order."""
        yield from self._where(f"cut > {after:d}")

    def newest(self, count: int) -> list[LedgerRow]:
        """The newest cuts, at most so many, in order."""
        last = self.last()
        return [] if last is None else list(self.rows(after=last.cut - count))

    def cut(self, number: int) -> LedgerRow | None:
        """The cut of that number."""
        return next(self._where(f"cut = {number:d}"), None)

    def up_to_lsn(self, lsn: int) -> LedgerRow | None:
        """The newest cut that holds no commit beyond the LSN.

        LSNs of two epochs are not comparable: of the newest epoch that has such a cut.
        """
        return next(self._where(f"lsn <= {lsn:d}", "DESC LIMIT 1"), None)

    def up_to_time(self, time: datetime) -> LedgerRow | None:
        """The newest cut before the first that holds a commit after the time.

        The source's clock may have been set back, so commit times need not grow with the cuts.
        """
        micros = (time - EPOCH) // timedelta(microseconds=1)
        later = self._where(f"committed_at > to_timestamp_micros({micros:d})", "LIMIT 1")
        first = next(later, None)
        before = "" if first is None else f" AND cut < {first.cut:d}"
        return next(self._where(f"lsn IS NOT NULL{before}", "DESC LIMIT 1"), None)

    def _where(self, condition: str, order: str = "") -> Iterator[LedgerRow]:
        table = self._opened()
        if table is None:
            return
        query = f"SELECT * FROM ledger WHERE {condition} ORDER BY cut {order}"  # noqa: S608 - ours
        found = QueryBuilder().register("ledger", table).execute(query).read_all()
        for row in pa.table(found).to_pylist():
            yield _from_dict(row)

    def _opened(self) -> DeltaTable | None:
        if self._table is None:
            self._table = open_table(self.path)
        else:
            self._table.update_incremental()
        return self._table


def _mark(row: LedgerRow) -> CommitProperties:
    return CommitProperties(custom_metadata={MARK: json.dumps(asdict(row), default=str)})


def _from_json(text: str) -> LedgerRow:
    raw = json.loads(text)
    for name in ("committed_at", "published_at"):
        raw[name] = raw[name] and datetime.fromisoformat(raw[name])
    return _from_dict(raw)


def _from_dict(raw: dict[str, Any]) -> LedgerRow:
    # Rows of earlier versions lack what came later.
    entries = tuple(TableEntry(**_present(entry)) for entry in raw["tables"])
    topics = dict(raw.get("topic_ids") or {})
    if raw.get("notes_offset") is None:
        raw = {**raw, "notes_offset": -1}
    return LedgerRow(**{**raw, "tables": entries, "topic_ids": topics})


def _present(raw: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in raw.items() if value is not None}
