"""What has not come in time is shown once the watermark says that it cannot come any more."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from cdc.derive.step.limits import Cost
from cdc.derive.step.mark import facts_of
from cdc.lake.records.derived_entry import DerivedEntry
from tests.unit.derive.late.changing import time
from tests.unit.derive.late.logs import at
from tests.unit.derive.late.waiting import (
    COUNTS,
    UNPAID,
    Did,
    Payment,
    Waiting,
    in_cuts,
    schemas,
    waiting,
)
from tests.unit.derive.small_lake import rows_of

NOW = at("10:20")
PLACED = at("10:00")
ORDER = Did(NOW, orders=[(None, (1, PLACED))])
MINE: Payment = (7, 1, at("10:10"))


def paid(*rows: Payment) -> Did:
    return Did(NOW, [(None, row) for row in rows])


def others(text: str) -> Did:
    """A payment of an order that is not there: it moves the watermark, and nothing else."""
    return paid((at(text), 99, at(text)))


HAZARD = [ORDER, others("10:14"), others("10:15"), paid(MINE)]


WAITS, FINAL = False, True
"""Of a row: whether its wait is over."""


def unpaid(*more: object) -> tuple[object, ...]:
    return (1, time(PLACED), None, *more)


def paid_row(*more: object) -> tuple[object, ...]:
    return (1, time(PLACED), 7, *more)


def test_an_unpaid_order_appears_when_no_payment_can_come_in_time(tmp_path: Path) -> None:
    """Hazard 29, corrected: at 10:14 it is not there, at 10:15 it is, then its payment is."""
    found = in_cuts(tmp_path, waiting(emit="final"), HAZARD, 4)

    assert [seen for seen, _ in found] == [[], [], [unpaid()], [paid_row()]]
    (late,) = found[-1][1]
    times = (time(at("10:10")), time(at("10:10")), time(at("10:15")))
    assert late == (7, 1, time(at("10:10")), "c", "added", *times, 3, 3000)


def test_a_payment_that_is_late_is_put_aside(tmp_path: Path) -> None:
    """Hazard 29, in the late rows: what was shown stays."""
    found = in_cuts(tmp_path, waiting(policy="aside", emit="final"), HAZARD, 4)

    assert [seen for seen, _ in found] == [[], [], [unpaid()], [unpaid()]]
    assert [row[:5] for row in found[-1][1]] == [(7, 1, time(at("10:10")), "c", "left out")]


@pytest.mark.parametrize("policy", ["keep", "aside"])
def test_all_rows_are_there_and_say_whether_they_are_final(tmp_path: Path, policy: str) -> None:
    found = in_cuts(tmp_path, waiting(policy=policy), HAZARD, 4)

    last = paid_row if policy == "keep" else unpaid
    shown = [[unpaid(WAITS)], [unpaid(WAITS)], [unpaid(FINAL)], [last(FINAL)]]
    assert [seen for seen, _ in found] == shown


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        (COUNTS, [[], [(1, time(PLACED), 0)], [(1, time(PLACED), 1)]]),
        (UNPAID, [[], [(1, time(PLACED))], []]),
    ],
)
def test_groups_and_conditions_wait_too(
    tmp_path: Path, query: str, shown: list[list[object]]
) -> None:
    found = in_cuts(tmp_path, waiting(query, emit="final"), HAZARD, 4)

    assert [seen for seen, _ in found[1:]] == shown


def test_a_payment_at_the_bound_is_the_last_in_time(tmp_path: Path) -> None:
    """It moves the watermark to the bound itself; a second one of that minute is late."""
    second: Payment = (8, 1, at("10:15"))
    did = [ORDER, paid((7, 1, at("10:15"))), paid(second)]

    found = in_cuts(tmp_path, waiting(policy="aside", emit="final"), did, 3)

    assert [seen for seen, _ in found] == [[], [paid_row()], [paid_row()]]
    assert [row[0] for row in found[-1][1]] == [8]


@pytest.mark.parametrize("cuts", [1, 2, 6])
def test_an_order_that_waits_has_each_payment_that_is_not_too_late(
    tmp_path: Path, cuts: int
) -> None:
    """Behind the watermark, but before it has passed the bound: it counts, and then is final."""
    taken_back = Did(NOW, [(MINE, None)])
    moved = Did(NOW, [((8, 1, at("10:09")), (8, 1, at("10:08")))])
    did = [
        ORDER,
        others("10:12"),
        paid(MINE, (8, 1, at("10:09"))),
        others("10:15"),
        taken_back,
        moved,
    ]

    seen, late = in_cuts(tmp_path, waiting(policy="aside"), did, cuts)[-1]

    assert seen == [(1, time(PLACED), 7, True), (1, time(PLACED), 8, True)]
    noted = [(row[0], row[3], row[4]) for row in late]
    assert sorted(noted) == [
        (7, "c", "left out"),
        (7, "d", "kept"),
        (8, "c", "left out"),
        (8, "u", "kept"),
        (8, "u", "left out"),
    ]


def test_a_payment_that_came_too_late_and_went_was_never_there(tmp_path: Path) -> None:
    did = [ORDER, others("10:15"), paid(MINE), Did(NOW, [(MINE, None)])]

    found = in_cuts(tmp_path, waiting(policy="aside", emit="final"), did, 4)

    assert [seen for seen, _ in found] == [[], [unpaid()], [unpaid()], [unpaid()]]


def test_an_order_that_comes_late_is_final_at_once(tmp_path: Path) -> None:
    """It has the payments that came before the watermark passed its bound."""
    did = [paid(MINE), others("10:15"), paid((8, 1, at("10:11"))), ORDER]

    found = in_cuts(tmp_path, waiting(policy="aside", emit="final"), did, 4)

    assert [seen for seen, _ in found] == [[], [], [], [paid_row()]]


def test_an_order_without_a_time_waits_for_ever(tmp_path: Path) -> None:
    did = [Did(NOW, orders=[(None, (1, None))]), others("10:15")]

    assert in_cuts(tmp_path, waiting(), did, 2)[-1][0] == [(1, None, None, False)]
    assert in_cuts(tmp_path / "final", waiting(emit="final"), did, 2)[-1][0] == []


def test_what_is_allowed_is_waited_for(tmp_path: Path) -> None:
    did = [ORDER, others("10:19"), paid(MINE), others("10:20")]

    found = in_cuts(tmp_path, waiting(allowed="5 minutes", emit="final"), did, 4)

    assert [seen for seen, _ in found] == [[], [], [], [paid_row()]]
    assert [row[0] for row in found[-1][1]] == [7]


@pytest.mark.parametrize("policy", ["keep", "aside"])
@pytest.mark.parametrize("emit", ["updates", "final"])
def test_one_seven_and_thirty_cuts_are_the_same(tmp_path: Path, policy: str, emit: str) -> None:
    placed: list[tuple[int, int | None]] = [(number, number * 11 % 120) for number in range(30)]
    came: list[Payment] = [(n, n % 30, n * 37 % 140) for n in range(45)]
    did = [Did(200, orders=[(None, row)]) for row in placed[:15]]
    did += [Did(200, [(None, row)]) for row in came]
    did += [Did(200, [(row, None if row[0] % 2 else (*row[:2], 130))]) for row in came[::3]]
    did += [Did(200, orders=[(None, row)]) for row in placed[15:]]
    text = waiting(allowed="20 minutes", policy=policy, emit=emit)

    found = [in_cuts(tmp_path, text, did, number)[-1] for number in (1, 7, 30)]

    assert found[0] == found[1] == found[2]
    assert len(found[0][0]) >= 20
    assert {row[4] for row in found[0][1]} == {
        "keep": {"added", "removed"},
        "aside": {"left out", "kept"},
    }[policy]


def facts(entry: DerivedEntry) -> dict[str, Any]:
    return facts_of(DeltaTable(entry.path, version=entry.version).history(1)[0])


@pytest.mark.parametrize("key", ["", "key: [id, payment]\n"])
@pytest.mark.parametrize("emit", ["updates", "final"])
def test_an_order_becomes_final_by_its_scope(tmp_path: Path, key: str, emit: str) -> None:
    """No order and no payment of one changes, and of the table only what waits no longer."""
    more = [(None, (number, at("11:00"))) for number in range(2, 9)]
    did = [Did(NOW, orders=[*ORDER.orders, *more]), others("10:14"), others("10:15")]
    text = waiting(emit=emit).replace("late:", f"{key}late:", 1)
    lake = Waiting(tmp_path, did)
    with closing(lake.keep(text)) as kept:
        entries = [lake.cut(kept, upto)[1] for upto in (1, 2, 3)]

    assert entries[1].version == entries[0].version
    cost = Cost(**facts(entries[2])["cost"])
    assert (cost.mode, cost.why, cost.keys) == ("scoped", "", 1)
    assert unpaid(*(() if emit == "final" else (FINAL,))) in rows_of(entries[2])
    assert len(rows_of(entries[2])) == (1 if emit == "final" else 8)


def test_heartbeats_end_the_wait_of_a_table_that_rests(tmp_path: Path) -> None:
    text = waiting(emit="final").replace(", policy", ", idle: 5 minutes, policy")
    did = [Did(at("10:01"), orders=ORDER.orders), Did(at("10:19")), Did(at("10:20"))]

    found = in_cuts(tmp_path, text, did, 3)

    assert [seen for seen, _ in found] == [[], [], [unpaid()]]


@pytest.mark.parametrize("policy", ["keep", "aside"])
def test_times_without_a_zone_are_those_of_utc(tmp_path: Path, policy: str) -> None:
    lake = Waiting(tmp_path, HAZARD, schemas=schemas(pa.timestamp("us")))
    with closing(lake.keep(waiting(policy=policy, emit="final"))) as kept:
        found = [rows_of(lake.cut(kept, upto)[1]) for upto in (2, 3, 4)]

    placed = time(PLACED).replace(tzinfo=None)
    assert found == [[], [(1, placed, None)], [(1, placed, 7 if policy == "keep" else None)]]
