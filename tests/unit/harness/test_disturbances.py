"""The random kills are drawn from a seed."""

from tests.faults.scenes.disturbances import DISTURBANCES, KILLS, drawn


def test_as_many_kills_are_drawn_as_were_asked_for_and_others_between() -> None:
    names = [name for _, name in drawn(7, 200, 6.0)]

    assert sum(name in KILLS for name in names) == 200
    assert names[-1] in KILLS
    assert set(names) == set(DISTURBANCES)
    assert len(names) < 300


def test_a_seed_draws_the_same_again_and_another_does_not() -> None:
    first = list(drawn(7, 20, 6.0))

    assert list(drawn(7, 20, 6.0)) == first
    assert list(drawn(8, 20, 6.0)) != first
    assert all(0 <= pause <= 6.0 for pause, _ in first)
