"""Keeps the ledger: one row per cut, written once the cut's last table has reached its position."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, write_deltalake

from cdc.failpoints import Failpoint, reach
from cdc.lake.files.delta import storage_options
from cdc.lake.records.derived_entry import DERIVED_ENTRY, DerivedEntry
from cdc.lake.table.known_commit import known_commit
from cdc.lake.table.positions import MARK, open_table
from cdc.lake.upkeep.control_tables import KEPT, optimize

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
        ("delta_id", pa.string()),
    ]
)
NAMED: Final = 20
"""Tables of a cut up to which the commit's metadata names them all."""
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
        ("derived", pa.list_(DERIVED_ENTRY)),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEntry:
    """Describes one captured table at a cut."""

    table: str
    path: str
    version: int  # Delta version that holds the cut
    offset: int  # last offset of its topic inside the cut; -1 if there is none yet
    state: str  # a value of TableState
    reason: str = ""
    rows_applied: int = 0
    refused: int = 0
    reading: int = 0  # number of the last reading in the table; UNREAD or LOST if one is needed
    # Events applied since the table was created; a changed key is a delete and an insert.
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    reads: int = 0  # of the first snapshot
    truncates: int = 0
    delta_id: str = ""  # of the Delta table; another one if it was made anew; empty if not known


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """Describes one cut."""

    cut: int
    epoch: int
    lsn: int | None  # end of the last commit inside; None while only a snapshot is applied
    committed_at: datetime | None  # source time of that commit
    published_at: datetime
    transactions: int  # since the previous cut
    request: str | None = None  # the verification that requested this cut
    covers_lsn: int | None = None  # no commit lies between ``lsn`` and this LSN
    marker_offset: int = -1  # last offset inside, in the topic of transaction markers
    landing_floor: int = 0  # every landing up to this number is wholly inside
    notes_offset: int = -1  # last offset inside, in the topic of structure notes
    tables: tuple[TableEntry, ...] = field(default=())
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """Topic -> Kafka's topic id, for every topic that the offsets refer to."""
    snapshot_end: int | None = None
    """An LSN at or after the end of the first snapshot."""
    derived: tuple[DerivedEntry, ...] = field(default=())

    @property
    def entries(self) -> tuple[TableEntry | DerivedEntry, ...]:
        """Return the entries of all tables, the captured ones first."""
        return (*self.tables, *self.derived)

    def reaches(self, lsn: int, epoch: int) -> bool:
        """Return whether the cut is of ``epoch`` or a later one, and its LSN is at least ``lsn``.

        An LSN in an earlier epoch proves nothing: LSNs of two epochs are not comparable, because
        the source may have been restored between them.
        """
        return self.epoch >= epoch and self.lsn is not None and self.lsn >= lsn

    def entry(self, table: str) -> TableEntry | None:
        """Return the entry of a captured table (``schema.name``); None if the cut lacks it."""
        return next((entry for entry in self.tables if entry.table == table), None)

    def derived_entry(self, table: str) -> DerivedEntry | None:
        """Return the entry of a derived table; None if the cut lacks it."""
        return next((entry for entry in self.derived if entry.table == table), None)

    def readable(self, table: str) -> TableEntry | DerivedEntry | None:
        """Return the entry of a captured or derived table; None if the cut lacks it."""
        return self.entry(table) or self.derived_entry(table)


_PROPERTIES: Final = {
    "delta.checkpointInterval": "50",
    **KEPT,  # every cut is a commit; delta-rs removes old ones by itself
}


def _set_properties(path: str, table: DeltaTable, mark: CommitProperties) -> None:
    """Set what a ledger of an earlier version lacks."""
    have = table.metadata().configuration
    if any(have.get(name) != value for name, value in _PROPERTIES.items()):
        with known_commit(path, mark) as known:
            table.alter.set_table_properties(_PROPERTIES, commit_properties=known)


class Ledger:
    """Opens the Delta table of cuts, which the job alone writes and anyone may read."""

    def __init__(self, path: str, *, kept: timedelta | None = None) -> None:
        """Open the ledger at ``path``.

        ``kept``, set by the job, is how long a cut stays; by default cuts stay for ever.
        """
        self.path = path
        self._kept = kept
        self._table: DeltaTable | None = None

    def append(self, row: LedgerRow) -> None:
        """Publish a cut. The commit's metadata repeats the row, which makes ``last`` cheap.

        Of a cut of many tables it has the number alone: what a commit costs does not depend on
        how many tables are followed.
        """
        columns = {name: [value] for name, value in asdict(row).items()}
        mark = _mark(row)
        with known_commit(self.path, mark) as known:
            write_deltalake(
                self.path,
                pa.table(columns, schema=SCHEMA),
                mode="append",
                schema_mode="merge",  # a ledger of an earlier version has fewer columns
                configuration=_PROPERTIES,
                commit_properties=known,
                storage_options=storage_options(self.path),
            )
        table = self._opened()
        if table is not None and optimize(self.path, table, mark):
            _set_properties(self.path, table, mark)
            if self._kept is not None:
                self._expire(row.published_at - self._kept, mark)

    def _expire(self, time: datetime, mark: CommitProperties) -> None:
        """Drop the cuts older than the one that was the newest at ``time``.

        Called when all rows are in one file, so that only this file is rewritten.
        """
        micros = (time - EPOCH) // timedelta(microseconds=1)
        published = self._where(f"published_at > to_timestamp_micros({micros:d})", "LIMIT 1")
        oldest, later, table = self.first(), next(published, None), self._opened()
        if table is None or oldest is None or later is None or oldest.cut >= later.cut - 1:
            return
        self._drop(table, later.cut - 1, mark)

    def forget_before(self, cut: int) -> None:
        """Drop the cuts before this one; called between two appends."""
        table, last, oldest = self._opened(), self.last(), self.first()
        if table is not None and last is not None and oldest is not None and oldest.cut < cut:
            self._drop(table, cut, _mark(last))

    def _drop(self, table: DeltaTable, before: int, mark: CommitProperties) -> None:
        reach(Failpoint.BEFORE_LEDGER_EXPIRY)
        with known_commit(self.path, mark) as known:
            table.delete(f"cut < {before:d}", commit_properties=known)
        reach(Failpoint.AFTER_LEDGER_EXPIRY)

    def first(self) -> LedgerRow | None:
        """Return the oldest cut in the ledger; None before the first."""
        return next(self._where("true", "LIMIT 1"), None)

    def last(self) -> LedgerRow | None:
        """Return the newest cut, named by the newest commit's metadata; None before the first."""
        table = self._opened()
        if table is None:
            return None
        text = table.history(1)[0].get(MARK)
        if text is None:
            return None
        raw = json.loads(str(text))
        return _parsed(raw) if "tables" in raw else self.cut(raw["cut"])

    def rows(self, *, after: int = 0) -> Iterator[LedgerRow]:
        """Yield every cut with a number above ``after``, in order."""
        yield from self._where(f"cut > {after:d}")

    def newest(self, count: int) -> list[LedgerRow]:
        """Return the newest cuts, at most ``count``, in order."""
        last = self.last()
        return [] if last is None else list(self.rows(after=last.cut - count))

    def cut(self, number: int) -> LedgerRow | None:
        """Return the cut with this number; None if the ledger has none."""
        return next(self._where(f"cut = {number:d}"), None)

    def up_to_lsn(self, lsn: int) -> LedgerRow | None:
        """Return the newest cut that holds no commit beyond the LSN; None if there is none.

        LSNs of two epochs are not comparable: the cut is of the newest epoch that has such a cut.
        """
        return next(self._where(f"lsn <= {lsn:d}", "DESC LIMIT 1"), None)

    def up_to_time(self, time: datetime) -> LedgerRow | None:
        """Return the newest cut before the first one that holds a commit after ``time``.

        The source's clock may have been set back, so commit times need not increase from cut to
        cut. Returns None if there is no such cut.
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
        result = QueryBuilder().register("ledger", table).execute(query).read_all()
        for row in pa.table(result).to_pylist():
            yield _from_dict(row)

    def _opened(self) -> DeltaTable | None:
        if self._table is None:
            self._table = open_table(self.path)
        else:
            self._table.update_incremental()
        return self._table


def _mark(row: LedgerRow) -> CommitProperties:
    facts = asdict(row) if len(row.entries) <= NAMED else {"cut": row.cut}
    return CommitProperties(custom_metadata={MARK: json.dumps(facts, default=str)})


def _parsed(raw: dict[str, Any]) -> LedgerRow:
    for name in ("committed_at", "published_at"):
        raw[name] = raw[name] and datetime.fromisoformat(raw[name])
    return _from_dict(raw)


def _from_dict(raw: dict[str, Any]) -> LedgerRow:
    # Rows of earlier versions lack newer columns.
    entries = tuple(TableEntry(**_present(entry)) for entry in raw["tables"])
    topics = dict(raw.get("topic_ids") or {})
    if raw.get("notes_offset") is None:
        raw = {**raw, "notes_offset": -1}
    derived = tuple(DerivedEntry(**_present(entry)) for entry in raw.get("derived") or ())
    return LedgerRow(**{**raw, "tables": entries, "topic_ids": topics, "derived": derived})


def _present(raw: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in raw.items() if value is not None}
