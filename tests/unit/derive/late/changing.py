"""A table whose transactions are known, and what derived tables over it are at each cut."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from cdc.derive.definition.definition import Definition
from cdc.derive.definition.folder import read_file
from cdc.derive.keep.derived_tables import DerivedTables
from cdc.derive.late.rule import LateRule
from cdc.derive.late.watermark import Event, Row, Transaction
from cdc.derive.late_rows.input_log import InputLog, LogSlice, Place
from cdc.derive.log.topic_rows import Recent
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import LedgerRow
from cdc.lake.table.positions import KEY_PROPERTY
from cdc.state.admissions import admission_now, admissions
from cdc.state.derived_requests import pauses, rebuilds
from cdc.tables import TableId
from tests.unit.derive.late.logs import MINUTE
from tests.unit.derive.small_lake import PATIENT, SmallLake, rows_of

EVENTS: Final = pa.schema(
    [("id", pa.int64()), ("n", pa.int64()), ("ts", pa.timestamp("us", "UTC"))]
)
TABLE: Final = TableId("shop", "events")
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
HOURS: Final = """\
/* ---
late: {{column: ts, allowed: {allowed}{more}}}{emit}
--- */
SELECT w.window_start, w.window_end, count(*) AS rows, sum(w.n) AS total
FROM {form} AS w GROUP BY w.window_start, w.window_end"""
TUMBLE: Final = "tumble(shop.events, ts, INTERVAL '1 hour')"
Values = tuple[int, int, int | None]
"""A row: its id, a number, and the minute of its time."""
Change = tuple[Values | None, Values | None]
"""A row before and after an event."""


@dataclass(frozen=True)
class Did:
    """A transaction: when it was committed, in minutes, and what it changed."""

    committed: int
    changes: Sequence[Change] = ()


def hours(form: str = TUMBLE, allowed: str = "10 minutes", more: str = "", emit: str = "") -> str:
    return HOURS.format(form=form, allowed=allowed, more=more, emit=emit)


def defined(text: str) -> list[Definition]:
    """Return the definition of the late rows, and that of ``marts.seen``."""
    read, problems = read_file("marts.seen.sql", "marts.seen.sql", text)
    assert problems == []
    return read


def after(log: Sequence[Did]) -> dict[int, Values]:
    """Return the table's rows after these transactions, by id."""
    rows: dict[int, Values] = {}
    for did in log:
        for old, new in did.changes:
            if old is not None:
                assert rows.pop(old[0]) == old
            if new is not None:
                assert new[0] not in rows
                rows[new[0]] = new
    return rows


def back_and_forth(count: int) -> list[Did]:
    """Return transactions whose times go back and forth, and whose rows are moved and deleted."""
    rows = [(number, number, number * 37 % 400) for number in range(count)]
    log = [Did(row[2], [(None, row)]) for row in rows]
    log += [Did(400, [(row, None if row[0] % 2 else (row[0], 1, 399 - row[2]))]) for row in rows]
    return log


def time(minute: int) -> datetime:
    return EPOCH + timedelta(minutes=minute)


@dataclass
class Log:
    """The transactions in the log; ``upto`` is how many of them the next cut has."""

    did: Sequence[Did]
    upto: int = 0
    given_up: int = 0  # so many of the first are no longer there

    def read(
        self, rule: LateRule, after: Place, row: LedgerRow, recent: Recent | None = None
    ) -> LogSlice:
        assert (rule.table, row.tables[0].table, recent) == (TABLE, str(TABLE), None)
        begin = max(after.get("transactions", 0), self.given_up)
        return LogSlice(
            begun=self._place(begin),
            place=self._place(self.upto),
            columns=EVENTS,
            transactions=self._transactions(begin),
        )

    def _place(self, number: int) -> Place:
        return {"transactions": number, "offset": number * 1000 - 1}

    def _transactions(self, begin: int) -> Iterator[Transaction]:
        for number in range(begin, self.upto):
            did = self.did[number]
            events = (
                Event(_row(old), _row(new), op_of(old, new), number * 1000 + place, _key(old, new))
                for place, (old, new) in enumerate(did.changes)
            )
            yield Transaction(did.committed * MINUTE, tuple(events), number)


def _row(values: Values | None) -> Row | None:
    if values is None:
        return None
    number, n, minute = values
    micros = None if minute is None else minute * MINUTE
    return Row(micros, (number, n, micros))


def _key(old: Values | None, new: Values | None) -> tuple[Any, ...]:
    (number, *_), *_ = (side for side in (old, new) if side is not None)
    return (number,)


def op_of(old: object, new: object) -> str:
    return "c" if old is None else "u" if new is not None else "d"


@dataclass
class InCuts(ABC):
    """A small lake that is brought to cuts of a log."""

    folder: Path
    lake: SmallLake = field(init=False)
    log: InputLog = field(init=False)

    @abstractmethod
    def publish(self, kept: DerivedTables, upto: int) -> LedgerRow:
        """Return the row of a cut that has so many transactions."""

    def keep(self, text: str, last: Sequence[DerivedEntry] = ()) -> DerivedTables:
        return DerivedTables(
            defined(text),
            self.lake.path,
            self.lake.limits(),
            last=last,
            rebuilds=rebuilds(self.folder),
            pauses=pauses(self.folder),
            seconds=PATIENT,
            log=self.log,
            admissions=admissions(self.folder),
        )

    def admit(self, where: str, *, seen: int, reason: str = "a reason") -> None:
        """Ask for an admission of late rows, of which the operator has seen those of a cut."""
        asked = admission_now(TableId("marts", "seen__late"), where, reason, seen)
        admissions(self.folder).ask(asked)

    def cut(self, kept: DerivedTables, upto: int) -> list[DerivedEntry]:
        """Return the entries at a cut that has so many transactions; all are well."""
        entries = list(self.publish(kept, upto).derived)
        assert [(one.state, one.reason) for one in entries] == [("streaming", "")] * len(entries)
        return entries

    def each(self, text: str, transactions: int, number: int) -> "list[Found]":
        """Return what there is at each of so many cuts; a rebuild afterwards gives the same."""
        ends = [transactions * cut // number for cut in range(1, number + 1)]
        with closing(self.keep(text)) as kept:
            found = [both(self.cut(kept, end)) for end in ends]
            for one in defined(text):
                rebuilds(self.folder).ask(one.table)
            assert both(self.cut(kept, transactions)) == found[-1]
            assert not any(rebuilds(self.folder).is_asked(one.table) for one in defined(text))
        return found


@dataclass
class Changing(InCuts):
    """Brings a small lake with the table to cuts of the log."""

    did: Sequence[Did]
    log: Log = field(init=False)

    def __post_init__(self) -> None:
        self.lake = SmallLake(self.folder, {"events": EVENTS})
        self.lake.set(events=[])
        table = DeltaTable(self.lake.path(TABLE))
        table.alter.set_table_properties({KEY_PROPERTY: '["id"]'}, raise_if_not_exists=False)
        self.log = Log(self.did)

    def publish(self, kept: DerivedTables, upto: int) -> LedgerRow:
        """Return the row of a cut that has so many transactions."""
        rows = after(self.did[:upto])
        values = [
            {"id": number, "n": n, "ts": None if minute is None else time(minute)}
            for number, n, minute in rows.values()
        ]
        if upto != self.log.upto:
            self.lake.set(events=values)
        self.log.upto = upto
        row = self.lake.row()
        return replace(row, derived=kept.entries(row))


Found = tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]
"""The rows of the table, and its late rows without their cut and without admissions."""


def in_cuts(folder: Path, text: str, did: Sequence[Did], number: int) -> list[Found]:
    """Return what there is at each of so many cuts."""
    return Changing(folder / str(number), did).each(text, len(did), number)


def alike(folder: Path, text: str, did: Sequence[Did], most: int) -> Found:
    """Return what there is in the end, which 1, 7 and ``most`` cuts give alike."""
    found = [in_cuts(folder, text, did, number)[-1] for number in (1, 7, most)]
    assert found[0] == found[1] == found[2]
    assert {row[4] for row in found[0][1]} == {"left out", "kept"}
    return found[0]


def both(entries: Sequence[DerivedEntry]) -> Found:
    late, seen = entries
    return rows_of(seen), [(*row[:-5], *row[-4:-2]) for row in rows_of(late)]
