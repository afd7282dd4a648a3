"""A slice of the log gives every event of a table, whole, with its transaction."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.apply.changes.reasons import AFTER_REFUSED
from cdc.apply.local.change import Key
from cdc.derive.log.event import Place, Row, RowEvent
from cdc.derive.log.log_reader import LogReader, Sliced
from cdc.derive.log.topic_rows import TopicRows
from cdc.errors import CdcError, ErrorKind
from cdc.lake.records.readings import Reading
from cdc.lake.table.positions import Position
from tests.events.source import TOPIC, act
from tests.unit.derive.log.logged import (
    BEGIN,
    MARKERS,
    NOON,
    TOASTY,
    Happened,
    LoggedSource,
    landed,
    parts,
    reader,
    recent,
    whole,
)

RANDOMS = st.randoms(use_true_random=False)
BEGUN = {TOPIC: -1, MARKERS: -1}


@dataclass
class Kept:
    """A caller's rows, which it brings on by what it is given; and the readings in between."""

    held: dict[Key, Row] = field(default_factory=dict)
    found: list[RowEvent] = field(default_factory=list)
    most: int = 0

    def rows(self, keys: Collection[Key]) -> Mapping[Key, Row]:
        return {key: self.held[key] for key in keys if key in self.held}

    def read(self, log: LogReader, after: Place, upto: Place) -> list[RowEvent]:
        for events in log.slice(TOASTY, after, upto, self):
            assert not isinstance(events, Reading)
            self.most = max(self.most, len(events))
            for event in events:
                self._take(event)
            self.found += events
        return self.found

    def _take(self, event: RowEvent) -> None:
        if event.op == "t":
            self.held.clear()
        elif event.key is not None and event.reason is None:
            self.held.pop(event.key, None)
            if event.after is not None:
                self.held[event.key] = event.after


def happened(random: Random, steps: int) -> LoggedSource:
    source = LoggedSource()
    for _ in range(steps):
        act(source, random, range(4))
        if random.random() < 0.03:
            source.truncate()
        if random.random() < 0.4:
            source.commit()
    source.commit()
    return source


def expected(events: Sequence[Happened]) -> list[tuple[Any, ...]]:
    return [
        (e.offset, e.op, e.key, whole(e.after), whole(e.before), e.lsn, e.committed_at)
        for e in events
    ]


def seen(events: Sequence[RowEvent]) -> list[tuple[Any, ...]]:
    return [
        (
            e.offset,
            e.op,
            None if e.key is None else e.key[0],
            None if e.after is None else list(e.after),
            None if e.before is None else list(e.before),
            e.lsn,
            None if e.transaction is None else e.transaction.committed_at,
        )
        for e in events
    ]


@settings(max_examples=15, deadline=None)
@given(random=RANDOMS, steps=st.integers(1, 40), most=st.integers(1, 9))
def test_from_the_log_in_one_slice_or_two_few_events_at_a_time(
    tmp_path_factory: pytest.TempPathFactory, random: Random, steps: int, most: int
) -> None:
    path = tmp_path_factory.mktemp("log") / "log"
    source = happened(random, steps // 2)
    middle = source.place
    for _ in range(steps - steps // 2):
        act(source, random, range(4))
    source.commit()
    landed(path, *parts(source.records, random))
    log, kept = reader(TopicRows(path=str(path), most=most)), Kept()

    kept.read(log, BEGIN, middle)
    found = kept.read(log, middle, source.place)

    assert seen(found) == expected(source.happened)
    assert kept.most <= most + 1


@settings(max_examples=15, deadline=None)
@given(random=RANDOMS, steps=st.integers(1, 40), most=st.integers(1, 9))
def test_from_memory_nothing_of_the_log_is_read(random: Random, steps: int, most: int) -> None:
    source = happened(random, steps)
    rows = TopicRows(path="/nowhere", recent=recent(source.records, BEGUN), most=most)

    found = Kept().read(reader(rows), BEGIN, source.place)

    assert seen(found) == expected(source.happened)


def test_what_is_older_than_memory_is_read_from_the_log(tmp_path: Path) -> None:
    """The round has the events beyond its last cut, a table that lags needs those before too."""
    source = LoggedSource()
    source.insert(1, 1, 1)
    source.commit()
    first = len(source.records)
    source.update(1, 2, {})
    source.commit()
    landed(tmp_path / "log", source.records)
    held = recent(source.records[first:], {TOPIC: 0, MARKERS: 0})

    found = Kept().read(
        reader(TopicRows(path=str(tmp_path / "log"), recent=held)), BEGIN, source.place
    )

    assert seen(found) == expected(source.happened)


def test_an_event_whose_end_has_expired_has_no_transaction(tmp_path: Path) -> None:
    source = happened(Random(1), 9)
    ends = [one["offset"] for one in source.records if one["topic"] == MARKERS]
    landed(
        tmp_path / "log",
        [one for one in source.records if one["offset"] > ends[0] or one["topic"] == TOPIC],
    )

    found = Kept().read(reader(TopicRows(path=str(tmp_path / "log"))), BEGIN, source.place)

    lost = {e.offset for e in found if e.op != "r" and e.transaction is None}
    stream = [e for e in source.happened if e.op != "r"]
    assert lost == {e.offset for e in stream if e.lsn == stream[0].lsn} != set()
    assert {e.offset: e.lsn for e in found if e.offset not in lost} == {
        e.offset: e.lsn for e in source.happened if e.offset not in lost
    }


def test_an_unchanged_value_behind_a_refused_event_is_refused_too() -> None:
    """Until the row is sent whole: what the refused one did to the value is not known."""
    source = LoggedSource()
    source.insert(1, 1, 1)
    source.update(1, 2, {"big": 6})
    record = source.records[-1]
    record["value"] = record["value"].replace(b"text 6", b"text \xff")
    source.update(1, 3, {})
    source.update(1, 4, dict.fromkeys(["big", "bigb", "bigj", "biga", "bigia", "bigh"], 5))
    source.commit()
    rows = TopicRows(path="/nowhere", recent=recent(source.records, BEGUN))

    found = Kept().read(reader(rows), BEGIN, source.place)

    first, broken, after, last = (event.reason for event in found)
    assert (first, after, last) == (None, AFTER_REFUSED, None)
    assert broken == "column big holds a value that string cannot represent"
    assert seen(found[-1:])[0][:4] == expected(source.happened[-1:])[0][:4]


def reading(number: int, offset: int, *, epoch: int = 1, is_whole: bool = True) -> Reading:
    return Reading(
        number=number,
        table="public.toasty",
        whole=is_whole,
        path="/readings/1",
        version=0,
        position=Position(epoch=epoch, offset=offset, reading=number),
        lsn=5000,
        cut=3,
        landing=1,
        operation="",
        made_at=NOON,
    )


def in_turn(found: Sequence[Sliced]) -> list[int | str]:
    """Return the readings and the offsets of the events, one after the other."""
    lists = (
        [f"reading {one.number}"] if isinstance(one, Reading) else [event.offset for event in one]
        for one in found
    )
    return [one for some in lists for one in some]


def test_a_reading_is_behind_the_events_that_it_contains() -> None:
    source = happened(Random(2), 9)
    at = source.happened[3].offset
    rows = TopicRows(path="/nowhere", recent=recent(source.records, BEGUN))
    readings = [reading(1, -1), reading(2, at), reading(3, at, is_whole=False), reading(4, 99)]
    log = reader(rows, readings)
    after = Place(epoch=1, offset=-1, marker_offset=-1, reading=1)
    upto = Place(epoch=1, offset=source.place.offset, marker_offset=99, reading=3)

    found = list(log.slice(TOASTY, after, upto, Kept()))

    offsets = [event.offset for event in source.happened]
    assert in_turn(found) == [*offsets[:4], "reading 2", "reading 3", *offsets[4:]]


def test_a_new_epoch_begins_with_its_whole_reading() -> None:
    source = happened(Random(2), 9)
    at = source.happened[3].offset
    rows = TopicRows(path="/nowhere", recent=recent(source.records, BEGUN))
    readings = [reading(1, 1), reading(2, at, epoch=2)]
    after = Place(epoch=1, offset=-1, marker_offset=-1, reading=0)
    upto = Place(epoch=2, offset=source.place.offset, marker_offset=99, reading=2)

    found = list(reader(rows, readings).slice(TOASTY, after, upto, Kept()))

    assert in_turn(found) == ["reading 2", *(event.offset for event in source.happened[4:])]
    with pytest.raises(CdcError, match="was not read in epoch 2") as caught:
        list(reader(rows, readings[:1]).slice(TOASTY, after, upto, Kept()))
    assert caught.value.kind is ErrorKind.TABLE_STOPPED
