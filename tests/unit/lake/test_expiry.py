"""Only events that no cut of the ledger and no table may still need expire from the log."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from cdc.lake.records.expiry import expired_places, tables_due_for_image
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
    image = Reading(
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
    return replace(image, **more)  # type: ignore[arg-type]


FIRST: Final = cut(20, 200, landing=40)
LAST: Final = cut(30, 300, landing=60)
IMAGE: Final = reading(1, 150, cut(15, 150, landing=30))


def given_up(*readings: Reading, first: LedgerRow = FIRST, last: LedgerRow = LAST) -> object:
    places = expired_places(first, last, readings, topic="w.{}".format, marker_topic=MARKERS)
    assert places.pop(MARKERS) == (first.landing_floor, first.marker_offset)
    return places


def test_events_before_the_image_that_the_oldest_cut_begins_with_expire() -> None:
    newer = reading(2, 250, cut(25, 250, landing=50))

    assert given_up(IMAGE, newer) == {"w.a.b": (30, 150)}


@pytest.mark.parametrize(
    "readings",
    [
        [],
        [reading(1, 250, cut(25, 250, landing=50))],  # after the oldest cut
        [replace(IMAGE, whole=False, image=False, number=0)],  # no replay begins with a difference
        [replace(IMAGE, table="a.c")],
        [replace(IMAGE, position=Position(epoch=2, offset=150))],
        [replace(IMAGE, image=False, number=5)],  # read, but not in the table at that cut
    ],
)
def test_without_an_image_all_events_stay(readings: list[Reading]) -> None:
    assert given_up(*readings) == {}


@pytest.mark.parametrize("number", [UNREAD, LOST])
def test_all_events_of_a_table_that_cannot_be_replayed_stay(number: int) -> None:
    assert given_up(IMAGE, first=cut(20, 200, landing=40, reading=number)) == {}


def test_a_table_behind_its_image_keeps_the_events_it_has_to_apply() -> None:
    assert given_up(IMAGE, last=cut(30, 149, landing=60, state="stopped")) == {}
    assert given_up(IMAGE, last=replace(LAST, tables=())) == {}


def test_landings_that_are_not_wholly_in_the_oldest_cut_stay() -> None:
    late = replace(IMAGE, landing=45)

    assert given_up(late) == {"w.a.b": (40, 150)}


@pytest.mark.parametrize(
    ("last", "readings", "is_due"),
    [
        (LAST, [], True),
        (LAST, [IMAGE], True),
        (LAST, [replace(IMAGE, made_at=NOW + 2 * DAY)], False),
        (cut(30, 150), [IMAGE], False),  # no event since
        (cut(30, 300, state="stopped"), [IMAGE], False),
        (cut(30, 300, refused=1), [IMAGE], False),
        (cut(30, 300, reading=UNREAD), [IMAGE], False),
        (replace(LAST, lsn=None), [IMAGE], False),
    ],
)
def test_an_image_is_due_for_a_table_at_the_cut_without_a_recent_one(
    last: LedgerRow, readings: list[Reading], *, is_due: bool
) -> None:
    tables = tables_due_for_image(FIRST, last, readings, now=NOW + 2 * DAY, retention=DAY)

    assert tables == (["a.b"] if is_due else [])


def test_a_young_lake_needs_no_image() -> None:
    assert tables_due_for_image(FIRST, LAST, [], now=NOW + DAY / 2, retention=DAY) == []


def test_an_image_counts_for_every_later_cut_and_a_reading_once_it_is_in_the_table() -> None:
    """The table itself does not record its images."""
    read = replace(IMAGE, number=2, image=False)

    assert readings_at([IMAGE, read], cut(14, 0), "a.b") == []
    assert readings_at([IMAGE, read], FIRST, "a.b") == [IMAGE]
    assert readings_at([IMAGE, read], cut(20, 200, reading=2), "a.b") == [IMAGE, read]


def test_the_index_holds_images_and_readings(tmp_path: Path) -> None:
    index = Readings(str(tmp_path / "readings"))
    read = replace(IMAGE, image=False, number=1, made_at=NOW)
    for entry in (read, replace(IMAGE, number=2), replace(IMAGE, number=3, table="c.d")):
        index.add(entry)

    index.forget("a.b", before=2)

    assert [(entry.number, entry.image) for entry in index.rows()] == [(2, True), (3, True)]


def test_the_position_of_the_log_records_what_has_expired() -> None:
    at = LandedPosition(epoch=1, landing=9, offsets={}, topic_ids={}, expired={"w.a.b": (30, 150)})

    assert '"expired": {"w.a.b": [30, 150]}' in at.metadata()


def test_a_periodic_task_is_due_once_per_period() -> None:
    now = [100.0]
    every = Every(10, clock=lambda: now[0])

    assert [every.is_due(), every.is_due()] == [True, False]
    now[0] = 110
    assert [every.is_due(), every.is_due()] == [True, False]
