"""A dry run prints its estimates, and refuses an operation that has no room."""

from dataclasses import replace

import pytest

from cdc.cli.show.forecast import facts, lines, span
from cdc.client.check import LITTLE_BYTES
from cdc.client.forecast import (
    DiskRoom,
    Forecast,
    SlotRoom,
    TableForecast,
    duration,
    refuse_full,
    total,
)
from cdc.errors import CdcError, ErrorKind

GIB = 1024**3
FORECAST = Forecast(
    command="resnapshot",
    tables=(
        TableForecast(table="shop.orders", rows=1000, bytes=GIB),
        TableForecast(table="shop.items", rows=None, bytes=GIB),
    ),
    where="",
    slot=SlotRoom(name="shop", retained_bytes=GIB, safe_bytes=3 * GIB, limit_bytes=4 * GIB),
    disks=(DiskRoom(place="lake.path", path="/lake", free_bytes=5 * GIB, needed_bytes=4 * GIB),),
    seconds=90.0,
    basis="11 rows/s in 20261121T234900-3f2a",
)


def run(command: str, state: str, rows: int, seconds: float | None, name: str) -> dict[str, object]:
    return {"command": command, "state": state, "rows_read": rows, "seconds": seconds, "id": name}


PAST = [
    run("resnapshot", "done", 500, 10.0, "older"),
    run("resnapshot", "done", 3000, 30.0, "newer"),
    run("resnapshot", "failed", 1, 100.0, "failed"),
    run("resnapshot", "done", 0, 5.0, "of nothing"),
    run("replay", "done", 10, 100.0, "another"),
    run("resnapshot", "running", 7, None, "now"),
]


def test_the_time_is_estimated_from_the_newest_successful_run_of_the_kind() -> None:
    assert duration("resnapshot", 200, PAST) == (2.0, "100 rows/s in newer")
    assert duration("replay", 200, PAST) == (2000.0, "0 rows/s in another")


def test_the_time_is_unknown_without_an_earlier_run() -> None:
    assert duration("rebuild", 200, PAST) == (None, "unknown: no earlier run")
    assert duration("resnapshot", 200, []) == (None, "unknown: no earlier run")
    seconds, basis = duration("resnapshot", None, PAST)
    assert seconds is None
    assert "no statistics" in basis


def test_a_sum_with_an_unknown_is_unknown() -> None:
    assert total([1, 2]) == 3
    assert total([1, None]) is None
    assert (FORECAST.rows, FORECAST.bytes) == (None, 2 * GIB)


@pytest.mark.parametrize(
    ("free", "needed"),
    [(5 * GIB, 5 * GIB + 1), (LITTLE_BYTES - 1, 0), (LITTLE_BYTES - 1, None)],
)
def test_a_disk_with_too_little_room_is_refused(free: int, needed: int | None) -> None:
    disk = DiskRoom(place="lake.path", path="/lake", free_bytes=free, needed_bytes=needed)

    with pytest.raises(CdcError, match="too little free space") as caught:
        refuse_full(replace(FORECAST, disks=(disk,)))

    assert caught.value.kind is ErrorKind.DISK_FULL
    assert f"{free:,} bytes are free at /lake" in caught.value.detail


def test_a_disk_with_enough_room_is_accepted() -> None:
    state = DiskRoom(place="state_dir", path="/state", free_bytes=1, needed_bytes=0)

    refuse_full(replace(FORECAST, disks=(*FORECAST.disks, state)))


def test_the_estimates_are_printed() -> None:
    assert lines(FORECAST) == [
        "time: about 2 min (11 rows/s in 20261121T234900-3f2a)",
        "slot shop: 1.0 GiB of WAL retained, 3.0 GiB left of max_slot_wal_keep_size = 4.0 GiB",
        "lake.path: 5.0 GiB free at /lake, 4.0 GiB needed",
        "nothing was changed: this was a dry run",
    ]


def test_unknown_estimates_are_printed_as_unknown() -> None:
    slot = SlotRoom(name="shop", retained_bytes=None, safe_bytes=None, limit_bytes=None)
    found = replace(
        FORECAST, where="id < 5", seconds=None, basis="unknown: no earlier run", slot=slot, disks=()
    )

    assert lines(found)[:3] == [
        "rows where id < 5",
        "time: unknown (no earlier run)",
        "slot shop: ? of WAL retained, without a limit (max_slot_wal_keep_size)",
    ]


def test_the_estimates_are_json() -> None:
    found = facts(FORECAST)

    assert (found["rows"], found["bytes"], found["seconds"]) == (None, 2 * GIB, 90.0)
    assert found["disks"][0]["is_enough"] is True
    assert found["tables"][0] == {"table": "shop.orders", "rows": 1000, "bytes": GIB}


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "1 s"), (59, "59 s"), (90, "2 min"), (9000, "2.5 h")]
)
def test_a_span_of_time_is_readable(seconds: float, text: str) -> None:
    assert span(seconds) == text
