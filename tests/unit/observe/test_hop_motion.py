"""A hop that stands still is told from one that works or is idle, in an invented pipeline."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.observe.hop_motion import (
    LIMIT_SECONDS,
    Hop,
    HopCounters,
    HopMotion,
    HopProgress,
    Motion,
    hop_motions,
    next_progress,
)

EVERY = 5.0


def after(looks: list[HopCounters]) -> dict[Hop, HopMotion]:
    progress: HopProgress | None = None
    for number, seen in enumerate(looks):
        progress = next_progress(progress, replace(seen, at=number * EVERY))
    assert progress is not None
    return {judged.hop: judged for judged in hop_motions(progress)}


def motions(looks: list[HopCounters]) -> list[str]:
    return [after(looks)[hop].motion.value for hop in Hop]


def look(sent: int | None, landed: int, turns: int, **signs: bool) -> HopCounters:
    return HopCounters(at=0, sent=sent, landed=landed, turns=turns, **signs)


def test_hops_whose_counters_change_move() -> None:
    assert motions([look(n, n, n) for n in range(100)]) == ["moves"] * 3


def test_if_nothing_arrives_only_the_first_hop_stands_still() -> None:
    """The hops after it have nothing to do, and rounds still turn."""
    looks = [look(9, 9, n) for n in range(20)]
    assert motions(looks) == ["stands still", "moves", "moves"]
    assert after(looks)[Hop.CAPTURE].seconds == 19 * EVERY


def test_an_unknown_counter_does_not_move() -> None:
    looks = [look(n if n < 3 else None, 3, n) for n in range(20)]
    assert motions(looks) == ["stands still", "moves", "moves"]
    # Nor does one that is seen again with its last known value.
    assert motions([*looks, look(2, 3, 20)]) == ["stands still", "moves", "moves"]


def test_an_idle_landing_stands_still_and_one_that_computes_is_behind() -> None:
    assert motions([look(n, 3, n) for n in range(20)]) == ["moves", "stands still", "moves"]
    works = [look(n, 3, n, working=True) for n in range(20)]
    assert motions(works) == ["moves", "behind", "moves"]


def test_idle_rounds_stand_still_and_a_long_merge_is_behind() -> None:
    assert motions([look(n, n, 3) for n in range(20)]) == ["moves", "moves", "stands still"]
    merge = [look(n, n, 3, working=True) for n in range(20)]
    assert motions(merge) == ["moves", "moves", "behind"]
    hangs = [look(20 + n, 20 + n, 3) for n in range(10)]
    assert motions([*merge, *hangs]) == ["moves", "moves", "stands still"]


def test_while_the_source_decodes_capture_is_only_behind() -> None:
    looks = [look(3, 3, n, decoding=True) for n in range(20)]
    assert motions(looks) == ["behind", "moves", "moves"]


def test_a_long_time_between_two_looks_counts_little() -> None:
    """The job itself may have been stopped, or the machine asleep."""
    progress = next_progress(next_progress(None, look(1, 1, 1)), replace(look(1, 1, 1), at=3600.0))
    assert [judged.motion for judged in hop_motions(progress)] == [Motion.MOVES] * 3


@pytest.mark.parametrize("hop", range(3))
def test_a_standstill_shows_within_a_minute(hop: int) -> None:
    looks = [look(n if hop else 0, n if hop != 1 else 0, n if hop != 2 else 0) for n in range(13)]
    assert motions(looks)[hop] == "stands still"
    assert LIMIT_SECONDS + 2 * EVERY < 60


steps = st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans())


@given(st.lists(steps, min_size=12, max_size=60))
def test_a_hop_stands_still_only_if_it_did_not_move_within_the_limit(
    moves: list[tuple[bool, bool, bool, bool]],
) -> None:
    """A hop with work that neither moved nor showed a sign of work does stand still."""
    sent = landed = turns = 0
    looks = [look(0, 0, 0)]
    for is_sent, lands, rounds, works in moves:
        sent, landed, turns = sent + is_sent, landed + lands, turns + rounds
        looks.append(look(sent, landed, turns, working=works))
    found = after(looks)
    newest = moves[-int(LIMIT_SECONDS / EVERY) :]
    sends, lands_, turned, worked = (any(each) for each in zip(*newest, strict=True))
    assert (found[Hop.CAPTURE].motion is Motion.STANDS) == (not sends)
    assert (found[Hop.APPLY].motion is Motion.STANDS) == (not turned and not worked)
    if lands_ or worked:
        assert found[Hop.LAND].motion is not Motion.STANDS
