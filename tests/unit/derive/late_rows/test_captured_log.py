"""Transactions come out of the log with every row as it was before, in any number of cuts."""

from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.apply.local.arrow import table_of
from cdc.derive.late.rule import Bound
from cdc.derive.late.watermark import Event, Transaction
from cdc.derive.late_rows.captured_log import CapturedLog
from cdc.derive.late_rows.input_events import microseconds
from cdc.derive.log.topic_rows import TopicRows
from cdc.errors import CdcError
from cdc.events.transactions import END
from cdc.lake.records.ledger import LedgerRow, TableEntry
from cdc.lake.records.readings import Reading
from cdc.lake.table.positions import KEY_PROPERTY, Position
from cdc.lake.table.store import MODE_PROPERTY
from tests.events.source import TABLE, act
from tests.unit.derive.late.logs import HOURLY, RULE
from tests.unit.derive.log.logged import (
    MARKER_ID,
    MARKERS,
    NOON,
    TOASTY,
    Happened,
    LoggedSource,
    landed,
    reader,
    whole,
)

RANDOMS = st.randoms(use_true_random=False)
ONES = replace(RULE, table=TABLE, window=replace(HOURLY, time="n"))


@dataclass(kw_only=True)
class Beating(LoggedSource):
    """Adds heartbeats to a source."""

    def beat(self) -> None:
        """Commit a transaction that has no event of the table."""
        counts = [{"data_collection": "wal2lake.heartbeat", "event_count": 1}]
        end = {
            "status": END,
            "id": f"{self.txid}:{self.lsn}",
            "event_count": 1,
            "data_collections": counts,
            "ts_ms": int(self.committed_at.timestamp() * 1000),
        }
        self._record(MARKERS, self.markers, MARKER_ID, end)
        self.markers, self.txid, self.lsn = self.markers + 1, self.txid + 1, self.lsn + 100


@dataclass
class Logged:
    """A source whose table is in the lake as well, a version for each cut."""

    folder: Path
    source: Beating = field(default_factory=Beating)
    readings: list[Reading] = field(default_factory=list)

    def cut(self) -> LedgerRow:
        """End the transaction, and return the row of a cut behind it."""
        self.source.commit()
        entry = TableEntry(
            table=str(TABLE),
            path=str(self.folder / "table"),
            version=self.write("table"),
            offset=self.source.offset - 1,
            state="streaming",
            reading=len(self.readings),
        )
        return LedgerRow(
            cut=1,
            epoch=1,
            lsn=self.source.lsn,
            committed_at=None,
            published_at=NOON,
            transactions=1,
            marker_offset=self.source.markers - 1,
            tables=(entry,),
        )

    def write(self, name: str) -> int:
        """Write the rows as they are now, as a table; return its version."""
        path = str(self.folder / name)
        rows = [row for one in self.source.rows.values() if (row := whole(one)) is not None]
        write_deltalake(path, table_of(TOASTY, rows, {}), mode="overwrite")
        table = DeltaTable(path)
        if MODE_PROPERTY not in table.metadata().configuration:
            properties = {KEY_PROPERTY: '["id"]', MODE_PROPERTY: "keyed"}
            table.alter.set_table_properties(properties, raise_if_not_exists=False)
        return DeltaTable(path).version()

    def read_again(self, *, image: bool) -> None:
        """Note the table as it is as a reading, or as an image."""
        self.source.commit()
        number = len(self.readings) + 1
        name = f"reading{number}"
        reading = Reading(
            number=number,
            table=str(TABLE),
            whole=True,
            path=str(self.folder / name),
            version=self.write(name),
            position=Position(epoch=1, offset=self.source.offset - 1),
            lsn=self.source.lsn,
            cut=1,
            landing=1,
            operation="x",
            made_at=NOON,
            image=image,
        )
        self.readings.append(reading)

    def log(self, begin: int = 0, given_up: int = -1) -> CapturedLog:
        """Return the log of all records but the first, whose last offset is that one."""
        landed(self.folder / "log", self.source.records[begin:])
        found = reader(TopicRows(path=str(self.folder / "log")), self.readings)
        return CapturedLog(lambda _: found, lambda _: given_up)


def did(source: LoggedSource) -> list[tuple[int, list[tuple[Any, ...]]]]:
    """Return what each transaction did, by the model of the source; not what a snapshot read."""
    return [
        (lsn, [change for one in events for change in changes(one)])
        for lsn, events in groupby(
            (one for one in source.happened if one.op != "r"), lambda one: one.lsn
        )
    ]


def changes(one: Happened) -> list[tuple[Any, ...]]:
    before, after = whole(one.before), whole(one.after)
    return [(one.offset, one.op, before if one.op in "ud" else None, after)]


def seen(transactions: list[Transaction]) -> list[tuple[int, list[tuple[Any, ...]]]]:
    return [(one.lsn, [told(event) for event in one.events]) for one in transactions]


def told(event: Event) -> tuple[Any, ...]:
    sides = [None if side is None else list(side.values) for side in (event.before, event.after)]
    rows = [row for row in sides if row is not None]
    assert event.key == (rows[0][0],)
    assert [side.time for side in (event.before, event.after) if side is not None] == [
        row[1] for row in rows
    ]
    return (event.offset, event.op, *sides)


@settings(max_examples=12, deadline=None)
@given(random=RANDOMS, cuts=st.integers(1, 4))
def test_rows_are_as_they_were_before_in_any_number_of_cuts(
    tmp_path_factory: pytest.TempPathFactory, random: Random, cuts: int
) -> None:
    logged = Logged(tmp_path_factory.mktemp("lake"))
    ends = []
    for _ in range(cuts):
        for _ in range(random.randrange(12)):
            act(logged.source, random, range(4))
            if random.random() < 0.4:
                logged.source.commit()
        ends.append(logged.cut())
    log, place, found = logged.log(), dict[str, int](), list[Transaction]()

    for row in ends:
        part = log.read(ONES, place, row)
        found += part.transactions
        place = dict(part.place)

    assert seen(found) == did(logged.source)
    assert {one.committed for one in found} <= {
        microseconds(one.committed_at) for one in logged.source.happened
    }
    whole_log = list(log.read(ONES, {}, ends[-1]).transactions)
    assert whole_log == found


def test_a_truncate_deletes_every_row(tmp_path: Path) -> None:
    logged = Logged(tmp_path)
    logged.source.insert(1, 10, None)
    first = logged.cut()
    logged.source.insert(2, 20, None)
    logged.source.truncate()
    logged.source.insert(1, 30, None)
    last = logged.cut()
    log = logged.log()

    place = log.read(ONES, {}, first).place
    (one,) = log.read(ONES, place, last).transactions

    times = [tuple(side and side.time for side in (e.before, e.after)) for e in one.events]
    assert times == [(None, 20), (10, None), (20, None), (None, 30)]
    assert [event.op for event in one.events] == ["c", "t", "t", "c"]


def test_rows_of_a_reading_are_no_events_and_are_known_afterwards(tmp_path: Path) -> None:
    logged = Logged(tmp_path)
    logged.source.rows[7] = {**dict.fromkeys(TOASTY.names), "id": 7, "n": 70}
    logged.read_again(image=False)
    logged.source.update(7, 71, {})
    row = logged.cut()

    (one,) = logged.log().read(ONES, {}, row).transactions

    assert [(event.op, event.before and event.before.time) for event in one.events] == [("u", 70)]


def test_it_begins_at_the_image_before_which_the_log_is_given_up(tmp_path: Path) -> None:
    logged = Logged(tmp_path)
    logged.source.insert(1, 10, None)
    logged.read_again(image=True)
    begin = len(logged.source.records)
    logged.source.update(1, 11, {})
    row = logged.cut()

    found = logged.log(begin, given_up=0).read(ONES, {}, row)

    assert [(e.before, e.after) for one in found.transactions for e in one.events] != []
    assert found.begun["offset"] == 0


def test_events_that_were_given_up_before_they_were_seen_stop_the_table(tmp_path: Path) -> None:
    logged = Logged(tmp_path)
    logged.source.insert(1, 10, None)
    row = logged.cut()
    place = logged.log().read(ONES, {}, row).place

    assert list(logged.log(given_up=0).read(ONES, place, row).transactions) == []
    with pytest.raises(CdcError, match=r"was given up beyond what its late rows have seen"):
        logged.log(given_up=1).read(ONES, place, row)


def test_commits_of_other_tables_are_there_where_the_table_may_rest(tmp_path: Path) -> None:
    logged = Logged(tmp_path)
    logged.source.insert(1, 10, None)
    logged.source.commit()
    logged.source.beat()
    logged.source.insert(2, 20, None)
    logged.source.commit()
    logged.source.beat()
    row = logged.cut()
    log = logged.log()

    idle = list(log.read(replace(ONES, idle=5), {}, row).transactions)

    assert [len(one.events) for one in idle] == [1, 0, 1, 0]
    assert [one.lsn for one in idle] == sorted(one.lsn for one in idle)
    assert list(log.read(ONES, {}, row).transactions) == [idle[0], idle[2]]


def test_a_column_that_is_no_time_stops_a_table_that_waits_for_it(tmp_path: Path) -> None:
    logged = Logged(tmp_path)
    logged.source.insert(1, 10, None)
    row = logged.cut()
    rule = replace(ONES, window=Bound(time="n", length=5))

    with pytest.raises(CdcError, match=r"late: .*\.n is .*int, which is no moment"):
        logged.log().read(rule, {}, row)


def test_a_transaction_without_its_end_stops_the_table(tmp_path: Path) -> None:
    logged = Logged(tmp_path)
    logged.source.insert(1, 10, None)
    row = logged.cut()
    logged.source.records.pop()

    with pytest.raises(CdcError, match="has no end of a transaction"):
        list(logged.log().read(ONES, {}, row).transactions)
