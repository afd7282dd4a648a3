"""What ``tests/soak`` says of tables that stand still beside a move."""

from collections.abc import Iterator

from tests.soak.bystanders import BEHIND_SECONDS, NAMES, STILL_SECONDS, Standing

ONE = frozenset({"renamed 1"})
TWO = ONE | {"renamed 2"}


def _looks(last: frozenset[str], seconds: float) -> Iterator[str]:
    """All have two rows, but the last one: for so long, and then it has them too."""
    standing = Standing(0)
    all_of_them = dict.fromkeys(NAMES, TWO)
    for cuts in range(10):
        standing.see(1 + cuts * seconds / 9, cuts, all_of_them | {NAMES[-1]: last})
    standing.see(1.1 + seconds, 10, all_of_them)
    return standing.failures(2)


def test_a_table_that_goes_on_with_the_others_is_no_failure() -> None:
    assert list(_looks(ONE, BEHIND_SECONDS - 1)) == []


def test_a_table_that_was_behind_the_others_is_named_though_it_came_after_them() -> None:
    assert list(_looks(ONE, BEHIND_SECONDS + 1)) == [
        "beside_9 was 61 s behind the other bystanders"
    ]


def test_a_table_that_lacks_a_row_is_named() -> None:
    standing = Standing(0)
    standing.see(1, 1, dict.fromkeys(NAMES, TWO) | {"beside_3": ONE})

    assert list(standing.failures(2)) == ["beside_3 has the rows of 1 steps of 2"]


def test_all_that_stand_still_together_are_a_failure() -> None:
    standing = Standing(0)
    for seconds in (1.0, STILL_SECONDS / 2, STILL_SECONDS + 2):
        standing.see(seconds, 1, dict.fromkeys(NAMES, TWO))

    assert list(standing.failures(2)) == [f"nothing was published for {STILL_SECONDS + 1:.0f} s"]
