"""A batch with too many refused events stops the table."""

import pytest

from cdc.apply.refused.too_many_refused import can_be_too_many, remedy, why_too_many
from cdc.config import Job

POLICY = Job(quarantine_limit_share=0.1, quarantine_limit_run=10)


@pytest.mark.parametrize(
    ("events", "refused", "run", "too_many"),
    [
        (1_000_000, 0, 0, False),
        (10, 10, 10, False),  # all events, but not more than the run
        (11, 11, 11, True),
        (11, 11, 1, True),  # only the share is exceeded
        (110, 11, 1, False),  # exactly the share
        (109, 11, 1, True),
        (1_000_000, 11, 11, True),  # only the run is exceeded
        (1_000_000, 11, 10, False),
        (1_000_000, 90_000, 10, False),
    ],
)
def test_too_many_in_a_row_or_too_large_a_share_stops_the_table(
    events: int, refused: int, run: int, *, too_many: bool
) -> None:
    assert (why_too_many(events, refused, run, POLICY) is not None) is too_many


def test_the_reason_has_the_number_and_the_share() -> None:
    assert why_too_many(2_000, 1_500, 3, POLICY) == (
        "1,500 of 2,000 events of a batch (75.0%) cannot be kept"
    )
    assert why_too_many(20_000, 1_500, 700, POLICY) == (
        "1,500 of 20,000 events of a batch (7.5%) cannot be kept, 700 of them in a row"
    )


def test_can_be_too_many_is_true_for_all_that_stop_the_table() -> None:
    """Where ``can_be_too_many`` says no, nothing is counted, so it must say yes to too many."""
    for refused in range(30):
        too_many = any(why_too_many(refused, refused, run, POLICY) for run in range(refused + 1))
        assert too_many == can_be_too_many(refused, POLICY)


def test_with_a_share_of_one_only_the_run_counts() -> None:
    policy = Job(quarantine_limit_share=1, quarantine_limit_run=10)

    assert why_too_many(1_000, 1_000, 10, policy) is None
    assert why_too_many(1_000, 1_000, 1_000, policy) is not None


def test_the_remedy_names_the_commands() -> None:
    commands = remedy("shop.orders")

    assert "wal2lake quarantine list shop.orders" in commands
    assert "wal2lake resnapshot shop.orders" in commands
