"""The ledger: one row per cut, written after the last table of the cut is at its position."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, QueryBuilder, write_deltalake

from cdc.lake.control_tables import optimize
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
    ]
)
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

    def entry(self, table: str) -> TableEntry | None:
        return next((entry for entry in self.tables if entry.table == table), None)


class Ledger:
    """The Delta table of cuts; written by the job alone, read by anyone."""

    def __init__(self, path: str) -> None:
        self.path = path
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
            configuration={"delta.checkpointInterval": "50"},
            commit_properties=mark,
        )
        if (table := self._opened()) is not None:
            optimize(table, mark)

    def last(self) -> LedgerRow | None:
        """The newest cut, from the newest commit's metadata; None before the first."""
        table = self._opened()
        if table is None:
            return None
        text = table.history(1)[0].get(MARK)
        return None if text is None else _from_json(str(text))

    def rows(self, *, after: int = 0) -> Iterator[LedgerRow]:
        """Every cut with a number above ``after``, in order."""
        table = self._opened()
        if table is None:
            return
        query = f"SELECT * FROM ledger WHERE cut > {after:d} ORDER BY cut"  # noqa: S608 - an int
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
    entries = tuple(TableEntry(**{**e, "reading": e.get("reading") or 0}) for e in raw["tables"])
    if raw.get("notes_offset") is None:
        raw = {**raw, "notes_offset": -1}
    return LedgerRow(**{**raw, "tables": entries})
