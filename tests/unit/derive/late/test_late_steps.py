"""A step on late rows is done once, whatever happens in between, and says where it begins."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from cdc.derive.late_rows.lateness import lateness_at
from cdc.derive.step.limits import Cost
from cdc.derive.step.mark import facts_of
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.state.derived_requests import rebuilds
from tests.unit.derive.late.changing import (
    Changing,
    Did,
    alike,
    back_and_forth,
    both,
    defined,
    hours,
    in_cuts,
    time,
)
from tests.unit.derive.late.logs import at
from tests.unit.derive.small_lake import rows_of

NOW = at("12:10")
FIRST = Did(NOW, [(None, (1, 10, at("12:10")))])
LATE = Did(NOW, [(None, (2, 5, at("11:45")))])
LATER = Did(NOW, [(None, (3, 5, at("11:46")))])
ASIDE = hours(more=", policy: aside")


@pytest.mark.parametrize("most", [30, pytest.param(100, marks=pytest.mark.deep)])
def test_one_seven_and_many_cuts_are_the_same(tmp_path: Path, most: int) -> None:
    """Hazard 12, of a log whose times go back and forth, and whose rows are moved and deleted."""
    alike(tmp_path, ASIDE, back_and_forth(60), most)


@pytest.mark.parametrize("text", [hours(), ASIDE])
def test_a_step_that_is_repeated_has_its_late_rows_once(tmp_path: Path, text: str) -> None:
    """Hazard 51: the job dies behind the commits of a cut that it has not published."""
    changing = Changing(tmp_path, [FIRST, LATE, LATER])
    with closing(changing.keep(text)) as kept:
        published = changing.cut(kept, 1)
        died = both(changing.cut(kept, 2))
    with closing(changing.keep(text, last=published)) as kept:
        again = both(changing.cut(kept, 2))
        last = both(changing.cut(kept, 3))

    assert again == died
    assert [row[0] for row in last[1]] == [2, 3]


def test_late_rows_are_committed_before_the_table_that_leaves_them_out(tmp_path: Path) -> None:
    late, seen = defined(ASIDE)

    assert (str(late.table), late.table in seen.inputs) == ("marts.seen__late", True)
    changing = Changing(tmp_path, [FIRST, LATE])
    with closing(changing.keep(ASIDE)) as kept:
        rows_entry, entry = changing.cut(kept, 2)
    assert facts(entry)["inputs"]["marts.seen__late"] == rows_entry.version


def facts(entry: DerivedEntry) -> dict[str, Any]:
    return facts_of(DeltaTable(entry.path, version=entry.version).history(1)[0])


def test_a_rebuild_that_finds_other_late_rows_stops(tmp_path: Path) -> None:
    changing = Changing(tmp_path, [FIRST, LATE, LATER])
    with closing(changing.keep(ASIDE)) as kept:
        late, _ = changing.cut(kept, 3)
        changing.log.did = [FIRST, Did(NOW), LATER]
        rebuilds(tmp_path).ask(defined(ASIDE)[0].table)
        stopped, lagging = changing.publish(kept, 3).derived

    assert (stopped.state, lagging.state) == ("stopped", "lagging")
    assert stopped.reason == (
        "the log has other late rows than the 2 that were recorded; "
        "remedy: this is a bug of wal2lake: report it"
    )
    assert stopped.version == late.version


def test_a_rebuild_takes_what_was_recorded_where_the_log_is_given_up(tmp_path: Path) -> None:
    changing = Changing(tmp_path, [FIRST, LATE, LATER])
    with closing(changing.keep(ASIDE)) as kept:
        before = both(changing.cut(kept, 3))
        changing.log.given_up = 2
        for one in defined(ASIDE):
            rebuilds(tmp_path).ask(one.table)
        after = both(changing.cut(kept, 3))

    assert after == before
    assert [row[0] for row in after[1]] == [2, 3]


def test_another_rule_judges_the_log_again(tmp_path: Path) -> None:
    changing = Changing(tmp_path, [FIRST, LATE])
    with closing(changing.keep(hours())) as kept:
        entries = changing.cut(kept, 2)
    with closing(changing.keep(hours(allowed="20 minutes"), last=entries)) as kept:
        late, seen = changing.cut(kept, 2)

    assert rows_of(late) == []
    assert [row[-1] for row in rows_of(seen)] == [False, False]


def test_a_window_becomes_final_by_its_scope(tmp_path: Path) -> None:
    """No row of the input changes, and of the table only the window that is over."""
    early = [(None, (number, 1, 30)) for number in range(5)]
    beats = [Did(at("01:00") + minute) for minute in (29, 30)]
    changing = Changing(tmp_path, [Did(at("00:30"), [*early, (None, (9, 1, 60))]), *beats])
    with closing(changing.keep(hours(more=", idle: 20 minutes"))) as kept:
        cuts = [changing.publish(kept, upto) for upto in (1, 2, 3)]

    assert [rows_of(row.derived[1])[0][-1] for row in cuts] == [False, False, True]
    first, second, third = (row.derived[1] for row in cuts)
    assert second.version == first.version
    cost = Cost(**facts(third)["cost"])
    assert (cost.mode, cost.why, cost.keys) == ("scoped", "", 1)
    told = [str(lateness_at(row)["marts.seen"].watermark) for row in cuts]
    assert told[2] == str(time(at("01:00")))


def test_a_session_is_final_when_no_row_in_time_can_join_it(tmp_path: Path) -> None:
    """Its gap is 10 minutes: it ended at 0:20, and a row of 0:20 is in time until 0:30 is over."""
    text = hours("sessions(shop.events, ts, INTERVAL '10 minutes')", "0 seconds")
    rows = [(1, 1, 10), (2, 1, 29), (3, 1, 20), (4, 1, 50), (5, 1, 19)]
    did = [Did(60, [(None, row)]) for row in rows]

    found = in_cuts(tmp_path, text, did, len(did))

    shown = [[(row[0], row[-2], row[-1]) for row in seen] for seen, _ in found]
    assert shown[1] == [(time(10), 1, False), (time(29), 1, False)]
    assert shown[2] == [(time(10), 3, False)]
    assert shown[3] == [(time(10), 3, True), (time(50), 1, False)]
    assert [row[0] for row in found[-1][1]] == [5]


def test_late_rows_beside_a_commit_of_somebody_else_stop(tmp_path: Path) -> None:
    """The log may no longer have all that was late, and does not have what was admitted."""
    changing = Changing(tmp_path, [FIRST, LATE, LATER])
    with closing(changing.keep(ASIDE)) as kept:
        late, _ = changing.cut(kept, 2)
        DeltaTable(late.path).alter.set_table_properties({"delta.appendOnly": "false"})
        stopped, lagging = changing.publish(kept, 3).derived

    assert (stopped.state, lagging.state) == ("stopped", "lagging")
    assert stopped.reason.startswith("[table-edited] version ")
    assert rows_of(stopped) == rows_of(late)
