"""Test what a condition sees of the match so far."""

from decimal import Decimal

import pytest

from cdc.derive.pattern.running import Running, Seen, Slot, State
from cdc.derive.pattern.values import Value, add, compare, multiply, subtract

NAN = float("nan")


def after(slot: Slot, *taken: tuple[str, Value | None]) -> Value | None:
    running = Running([slot], ["a", "b"])
    state: State = running.begin
    for at, (name, value) in enumerate(taken):
        state = running.after(state, name, at, (value,))
    return state[0]


@pytest.mark.parametrize(
    ("seen", "of_a", "of_all"),
    [
        (Seen.FIRST, 1, 0),
        (Seen.LAST, 3, 4),
        (Seen.COUNT, 2, 3),
        (Seen.SUM, 9, 10),
        (Seen.MIN, 4, 1),
        (Seen.MAX, 5, 5),
    ],
)
def test_a_slot_is_of_a_variable_or_of_all_rows(seen: Seen, of_a: int, of_all: int) -> None:
    taken = (("b", 1), ("a", 5), ("a", 4), ("a", None), ("b", None))
    column = None if seen in {Seen.FIRST, Seen.LAST} else 0

    assert after(Slot(seen, "a", column), *taken) == of_a
    assert after(Slot(seen, None, column), *taken) == of_all


def test_before_the_first_row_there_is_nothing() -> None:
    assert [after(Slot(seen, "a", 0), ("b", 1)) for seen in Seen] == [
        None, None, 0, None, None, None,
    ]  # fmt: skip


def test_rows_are_counted_whatever_they_hold() -> None:
    assert after(Slot(Seen.COUNT, "a"), ("a", None), ("a", 1), ("b", 1)) == 2


def test_numbers_are_compared_exactly_and_doubles_as_in_postgres() -> None:
    assert compare(Decimal("0.1") + Decimal("0.2"), Decimal("0.3")) == 0
    assert compare(2**60 + 1, Decimal(2**60)) == 1
    assert compare(2**60 + 1, float(2**60)) == 0  # the whole number becomes a double
    assert (compare(NAN, NAN), compare(NAN, float("inf")), compare(1, NAN)) == (0, 1, -1)
    assert compare("Z", "a") == compare("\uffff", "\U00010000") == -1


def test_arithmetic_is_exact_unless_a_side_is_double() -> None:
    large = Decimal(99999999999999999999999999999999999999)
    assert multiply(large, large) == 10**76 - 2 * 10**38 + 1
    assert (subtract(1, Decimal("0.10")), add(2**63, 1)) == (Decimal("0.90"), 2**63 + 1)
    assert add(Decimal("0.1"), 0.2) == 0.1 + 0.2
