"""A history has every version of the rows, however many cuts there were."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.derive.history_step.store import VersionStore
from tests.events.source import act
from tests.unit.derive.history.kept import KeptHistory, history
from tests.unit.derive.log.logged import NOON, LoggedSource

RANDOMS = st.randoms(use_true_random=False)
Act = Callable[[LoggedSource], None]
WAYS = ("one cut", "a cut after each", "two cuts", "few at once")


def tx(*acts: Act) -> Act:
    """Return what does these in one transaction."""

    def run(source: LoggedSource) -> None:
        for each in acts:
            each(source)
        source.commit()

    return run


def put(key: int, n: int, value: int | None = 0) -> Act:
    return lambda s: s.insert(key, n, value) if key not in s.rows else s.update(key, n, {})


def gone(key: int) -> Act:
    return lambda s: s.delete(key)


@pytest.fixture(params=WAYS)
def versions(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., list[Any]]:
    """Return what makes a history of some transactions, in one way, and again by a rebuild."""

    def made(*transactions: Act, names: Sequence[str], track: Sequence[str] = ("n",)) -> list[Any]:
        kept = KeptHistory(tmp_path, history(*track), most=1 if "few" in request.param else 99)
        for number, each in enumerate(transactions):
            each(kept.source)
            if request.param == "a cut after each" or (request.param == "two cuts" and number == 1):
                kept.bring()
        kept.bring()
        found = kept.rows(*names, "_from_lsn", "_to_lsn")
        whole = kept.rows()
        kept.bring(anew=True)
        assert kept.rows() == whole
        return found

    return made


def test_changes_of_a_row_in_one_transaction_are_one_version(
    versions: Callable[..., list[Any]],
) -> None:
    """Hazard 44."""
    found = versions(
        tx(put(1, 1)),
        tx(put(1, 2), put(1, 3)),
        tx(put(1, 4), put(1, 3)),
        tx(gone(1), put(1, 3)),
        names=["id", "n", "_op"],
    )

    assert found == [(1, 1, "c", 1000, 1100), (1, 3, "u", 1100, None)]


def test_a_clock_that_is_set_back_orders_nothing(tmp_path: Path) -> None:
    """Hazard 44: two commits have one time, and one an earlier time than the one before."""
    kept = KeptHistory(tmp_path, history("n"))
    for n in range(12):
        tx(put(1, n))(kept.source)
    kept.bring()

    found = kept.rows("n", "_from_lsn", "_to_lsn", "_from", "_to")

    assert [row[0] for row in found] == list(range(12))
    lsns = [1000 + 100 * n for n in range(12)]
    assert [row[1:3] for row in found] == list(zip(lsns, [*lsns[1:], None], strict=True))
    times = [row[3] for row in found]
    assert sorted(times) != times
    assert [row[4] for row in found] == [*times[1:], None]
    assert times[1] == NOON + timedelta(seconds=701 // 2)


def test_a_row_that_comes_and_goes_has_gaps(versions: Callable[..., list[Any]]) -> None:
    """Hazard 45."""
    found = versions(
        tx(put(1, 1)),
        tx(gone(1)),
        tx(put(2, 0)),
        tx(put(1, 1)),
        tx(gone(1)),
        tx(put(3, 1), gone(3)),
        names=["id"],
    )

    assert found == [(1, 1000, 1100), (2, 1200, None), (1, 1300, 1400)]


def test_null_is_a_value_and_untracked_columns_make_no_version(
    versions: Callable[..., list[Any]],
) -> None:
    """Hazard 46."""
    found = versions(
        tx(lambda s: s.insert(1, 1, 1)),
        tx(lambda s: s.update(1, 2, {"big": None})),
        tx(lambda s: s.update(1, 3, {"big": 2})),
        tx(lambda s: s.update(1, 4, {})),
        tx(lambda s: s.update(1, 5, {"bigj": 7})),
        names=["n", "big", "bigj"],
        track=["big"],
    )

    assert found == [
        (1, "text 1", '{"v": 1}', 1000, 1100),
        (2, None, '{"v": 1}', 1100, 1200),
        (5, "text 2", '{"v": 7}', 1200, None),
    ]


def test_unchanged_values_changed_keys_and_truncates(versions: Callable[..., list[Any]]) -> None:
    """Hazard 47."""
    found = versions(
        tx(lambda s: s.insert(1, 1, 1), lambda s: s.insert(3, 1, 3)),
        tx(lambda s: s.update(1, 2, {})),
        tx(lambda s: s.rekey(1, 2, {})),
        tx(lambda s: s.truncate(), lambda s: s.insert(3, 9, 9)),
        names=["id", "n", "big"],
    )

    assert found == [
        (1, 1, "text 1", 1000, 1100),
        (3, 1, "text 3", 1000, 1300),
        (1, 2, "text 1", 1100, 1200),
        (2, 2, "text 1", 1200, 1300),
        (3, 9, "text 9", 1300, None),
    ]


def test_a_step_reads_the_rows_that_its_events_are_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptHistory(tmp_path, history("n"))
    for key in range(20):
        kept.source.insert(key, 0, 1)
    kept.source.commit()
    kept.bring()
    kept.source.update(3, 1, {})
    kept.source.rekey(4, 30, {})
    kept.source.commit()

    def not_asked(_: VersionStore) -> None:
        raise AssertionError("all rows were read")

    monkeypatch.setattr(VersionStore, "load_all", not_asked)
    step = kept.bring()

    assert (step.added, step.removed, step.rows) == (4, 2, 22)


@settings(max_examples=6, deadline=None)
@given(random=RANDOMS, steps=st.integers(1, 16), most=st.integers(1, 9))
def test_at_every_cut_it_is_the_table_and_its_rows_do_not_depend_on_cuts(
    tmp_path_factory: pytest.TempPathFactory, random: Random, steps: int, most: int
) -> None:
    source, moments = LoggedSource(), []
    folder = tmp_path_factory.mktemp("kept")
    track = random.choice([[], ["n"], ["big", "biga"]])
    cuts = KeptHistory(folder, history(*track), source, most=most)
    once = KeptHistory(folder, history(*track), source, name="once")
    for _ in range(steps):
        act(source, random, range(4))
        if random.random() < 0.05:
            source.truncate()
        if random.random() < 0.4 and source.happened[-1].op != "r":
            lsn = source.lsn
            source.commit()
            moments.append((lsn, {k: tuple(r.values()) for k, r in source.rows.items()}))
            if random.random() < 0.5:
                cuts.bring(forget=random.random() < 0.3)
                assert cuts.at_lsn(lsn) == moments[-1][1]
    source.commit()
    cuts.bring()
    once.bring()

    assert cuts.rows() == once.rows()
    # What is not tracked is as it became later, until the version ended.
    kept = [n for n, name in enumerate(once.schema.names) if name in ("id", *track) or not track]
    for lsn, rows in moments:
        assert _some(once.at_lsn(lsn), kept) == _some(rows, kept)


def _some(rows: Mapping[int, Sequence[Any]], numbers: Sequence[int]) -> dict[int, list[Any]]:
    return {key: [row[n] for n in numbers] for key, row in rows.items()}
