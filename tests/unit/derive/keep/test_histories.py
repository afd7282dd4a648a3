"""Histories are brought to each cut with the other derived tables."""

from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cdc.derive.history.history import History
from cdc.failpoints import Failpoint
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.state.derived_requests import rebuilds
from tests.events.source import TABLE, TOPIC
from tests.unit.derive.log.logged import MARKERS, recent
from tests.unit.derive.logged_lake import LoggedLake
from tests.unit.derive.small_lake import defined, rows_of

PAST = defined("past", "", str(TABLE), hash="past", history=History(track=("n",)))
OPEN = defined(
    "open",
    'SELECT id, n FROM "marts"."past" WHERE _to_lsn IS NULL',
    "marts.past",
    key=("id",),
)


@pytest.fixture
def lake(tmp_path: Path) -> LoggedLake:
    return LoggedLake(tmp_path, {})


def versions(entry: DerivedEntry) -> list[tuple[Any, ...]]:
    """Return key, tracked value, first and last LSN of each version."""
    return [(row[0], row[1], row[8], row[9]) for row in rows_of(entry)]


def test_it_moves_with_the_cut_and_so_does_what_is_over_it(lake: LoggedLake) -> None:
    with closing(lake.derived(PAST, OPEN)) as kept:
        lake.source.insert(1, 1, 1)
        lake.commit()
        first, _ = kept.entries(lake.row())
        lake.source.update(1, 2, {})
        lake.commit()
        second, over = kept.entries(lake.row())

    assert versions(first) == [(1, 1, 1000, None)]
    assert versions(second) == [(1, 1, 1000, 1100), (1, 2, 1100, None)]
    assert rows_of(over) == [(1, 2)]
    assert (second.state, over.state, second.at_cut, second.rows) == ("streaming",) * 2 + (2, 2)


def test_the_round_s_rows_are_taken_from_memory(lake: LoggedLake, tmp_path: Path) -> None:
    """What is behind them need not be in the log for that."""
    with closing(lake.derived(PAST)) as kept:
        lake.source.insert(1, 1, 1)
        lake.commit()
        kept.entries(lake.row())
        lake.source.commit_elsewhere()
        lake.land_log()
        quiet = lake.row()
        kept.entries(quiet)
        after = {TOPIC: quiet.tables[0].offset, MARKERS: quiet.marker_offset}
        begun = len(lake.source.records)
        lake.source.update(1, 2, {})
        lake.commit()
        (tmp_path / "log").rename(tmp_path / "elsewhere")
        held = recent(lake.source.records[begun:], after)
        (entry,) = kept.entries(lake.row(), held)

    assert versions(entry) == [(1, 1, 1000, 1200), (1, 2, 1200, None)]


@pytest.mark.parametrize("point", [Failpoint.BEFORE_DERIVED_COMMIT, Failpoint.AFTER_DERIVED_COMMIT])
def test_a_crash_around_its_commit_loses_and_doubles_nothing(
    lake: LoggedLake, point: Failpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hazard 50: the next job has the entries of the cut before."""
    with closing(lake.derived(PAST)) as kept:
        lake.source.insert(1, 1, 1)
        lake.commit()
        before = kept.entries(lake.row())
        lake.source.update(1, 2, {})
        lake.commit()
        monkeypatch.setattr("cdc.derive.step.writer.reach", partial(_die, point))
        (failed,) = kept.entries(lake.row())
        monkeypatch.undo()
    assert failed.version == before[0].version

    lake.source.update(1, 3, {})
    lake.commit()
    with closing(lake.derived(PAST, last=before)) as again:
        (entry,) = again.entries(lake.row())

    assert versions(entry) == [(1, 1, 1000, 1100), (1, 2, 1100, 1200), (1, 3, 1200, None)]


def _die(wanted: Failpoint, point: Failpoint) -> None:
    if point is wanted:
        raise RuntimeError(point.value)


def test_it_waits_while_its_table_does_not_follow(lake: LoggedLake) -> None:
    """A stopped table has no event behind its own, though its topic has: they come later."""
    with closing(lake.derived(PAST)) as kept:
        lake.source.insert(1, 1, 1)
        lake.commit()
        (first,) = kept.entries(lake.row())
        lake.source.update(1, 2, {})
        lake.commit()
        lake.state = "stopped"
        (waiting,) = kept.entries(lake.row())
        lake.state = "streaming"
        (going_on,) = kept.entries(lake.row())

    assert (waiting.state, waiting.reason, waiting.version) == (
        "lagging",
        "its input public.toasty is stopped",
        first.version,
    )
    assert versions(going_on) == [(1, 1, 1000, 1100), (1, 2, 1100, None)]


def test_a_rebuild_makes_the_same_rows(lake: LoggedLake) -> None:
    with closing(lake.derived(PAST)) as kept:
        for n in (1, 2, 3):
            lake.source.insert(1, n, n) if n == 1 else lake.source.update(1, n, {})
            lake.commit()
            (entry,) = kept.entries(lake.row())
        rebuilds(lake.folder).ask(PAST.table)
        (anew,) = kept.entries(lake.row())

    assert anew.version > entry.version
    assert rows_of(anew) == rows_of(entry)
