"""What of the log may go is before all that a cut of the ledger, or a table, may still need."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from cdc.lake.records.expiry import due, expired
from cdc.lake.records.ledger import LedgerRow, TableEntry
from cdc.lake.records.readings import Reading, Readings, readings_at
from cdc.lake.table.positions import LOST, UNREAD, LandedPosition, Position
from cdc.waiting import Every

NOW: Final = datetime(2026, 3, 1, tzinfo=UTC)
DAY: Final = timedelta(days=1)
MARKERS: Final = "w.transaction"


def entry(offset: int, **more: object) -> TableEntry:
    given = {"table": "a.b", "path": "/a/b", "version": 4, "state": "streaming"}
    return TableEntry(**{**given, "offset": offset, **more})  # type: ignore[arg-type]


def cut(number: int, offset: int, *, landing: int = 0, **more: object) -> LedgerRow:
    return LedgerRow(
        cut=number,
        epoch=1,
        lsn=number * 10,
        committed_at=NOW,
        published_at=NOW,
        transactions=1,
        marker_offset=number,
        landing_floor=landing,
        tables=(entry(offset, **more),),
    )


def reading(number: int, offset: int, at: LedgerRow, **more: object) -> Reading:
    made = Reading(
        number=number,
        table="a.b",
        whole=True,
        path=f"/read/{number}",
        version=0,
        position=Position(epoch=1, offset=offset),
        lsn=at.lsn or 0,
        cut=at.cut,
        landing=at.landing_floor,
        operation="o",
        made_at=NOW,
        image=True,
    )
    return replace(made, **more)  # type: ignore[arg-type]


FIRST: Final = cut(20, 200, landing=40)
LAST: Final = cut(30, 300, landing=60)
IMAGE: Final = reading(1, 150, cut(15, 150, landing=30))


def given_up(*readings: Reading, first: LedgerRow = FIRST, last: LedgerRow = LAST) -> object:
    found = expired(first, last, readings, topic="w.{}".format, marker_topic=MARKERS)
    assert found.pop(MARKERS) == (first.landing_floor, first.marker_offset)
    return found


def test_what_lies_before_the_image_that_the_oldest_cut_begins_with_goes() -> None:
    newer = reading(2, 250, cut(25, 250, landing=50))

    assert given_up(IMAGE, newer) == {"w.a.b": (30, 150)}


@pytest.mark.parametrize(
    "readings",
    [
        [],
        [reading(1, 250, cut(25, 250, landing=50))],  # of after the oldest cut
        [replace(IMAGE, whole=False, image=False, number=0)],  # a difference begins nothing
        [replace(IMAGE, table="a.c")],
        [replace(IMAGE, position=Position(epoch=2, offset=150))],
        [replace(IMAGE, image=False, number=5)],  # read, and not in the table at that cut
    ],
)
def test_without_one_all_of_it_stays(readings: list[Reading]) -> None:
    assert given_up(*readings) == {}


@pytest.mark.parametrize("number", [UNREAD, LOST])
def test_of_a_table_that_nobody_can_replay_all_of_it_stays(number: int) -> None:
    assert given_up(IMAGE, first=cut(20, 200, landing=40, reading=number)) == {}


def test_a_table_that_is_behind_its_image_keeps_what_it_has_to_apply() -> None:
    assert given_up(IMAGE, last=cut(30, 149, landing=60, state="stopped")) == {}
    assert given_up(IMAGE, last=replace(LAST, tables=())) == {}


def test_nothing_goes_that_is_not_wholly_in_the_oldest_cut() -> None:
    late = replace(IMAGE, landing=45)

    assert given_up(late) == {"w.a.b": (40, 150)}


@pytest.mark.parametrize(
    ("last", "readings", "asked"),
    [
        (LAST, [], True),
        (LAST, [IMAGE], True),
        (LAST, [replace(IMAGE, made_at=NOW + 2 * DAY)], False),
        (cut(30, 150), [IMAGE], False),  # nothing has happened since
        (cut(30, 300, state="stopped"), [IMAGE], False),
        (cut(30, 300, refused=1), [IMAGE], False),
        (cut(30, 300, reading=UNREAD), [IMAGE], False),
        (replace(LAST, lsn=None), [IMAGE], False),
    ],
)
def test_an_image_is_due_of_what_stands_at_the_cut_and_has_none_of_late(
    last: LedgerRow, readings: list[Reading], *, asked: bool
) -> None:
    found = due(FIRST, last, readings, now=NOW + 2 * DAY, retention=DAY)

    assert found == (["a.b"] if asked else [])


def test_a_lake_that_is_young_needs_no_image() -> None:
    assert due(FIRST, LAST, [], now=NOW + DAY / 2, retention=DAY) == []


def test_an_image_counts_for_every_cut_after_it_and_a_reading_from_where_it_came_in() -> None:
    """The table itself never says that there is an image of it."""
    read = replace(IMAGE, number=2, image=False)

    assert readings_at([IMAGE, read], cut(14, 0), "a.b") == []
    assert readings_at([IMAGE, read], FIRST, "a.b") == [IMAGE]
    assert readings_at([IMAGE, read], cut(20, 200, reading=2), "a.b") == [IMAGE, read]


def test_the_index_knows_images_beside_readings_of_before_there_were_any(tmp_path: Path) -> None:
    index = Readings(str(tmp_path / "readings"))
    read = replace(IMAGE, image=False, number=1, made_at=NOW)
    for each in (read, replace(IMAGE, number=2), replace(IMAGE, number=3, table="c.d")):
        index.add(each)

    index.forget("a.b", before=2)

    assert [(each.number, each.image) for each in index.rows()] == [(2, True), (3, True)]


def test_a_position_says_what_was_given_up() -> None:
    at = LandedPosition(epoch=1, landing=9, offsets={}, topic_ids={}, expired={"w.a.b": (30, 150)})

    assert '"expired": {"w.a.b": [30, 150]}' in at.metadata()


def test_what_is_due_every_so_often_is_due_once_each_time() -> None:
    now = [100.0]
    every = Every(10, clock=lambda: now[0])

    assert [every.is_due(), every.is_due()] == [True, False]
    now[0] = 110
    assert [every.is_due(), every.is_due()] == [True, False]
