"""A slot is refused that left its connector behind, and never one that the connector moves on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.errors import CdcError, Reason
from cdc.source.slot import SlotState, refuse_ahead

MOVES = st.lists(st.tuples(st.sampled_from(["store", "confirm", "look", "ask"]), st.integers(1, 9)))


def slot_at(confirmed: int | None) -> SlotState:
    return SlotState(
        plugin="pgoutput",
        database="d",
        active_pid=None,
        application="",
        confirmed_lsn=confirmed,
        wal_status="reserved",
        retained_bytes=0,
        safe_bytes=None,
        of_this_database=True,
    )


@given(moves=MOVES, begun_at=st.integers(0, 100))
def test_a_connector_that_stores_before_it_confirms_is_never_refused(
    moves: list[tuple[str, int]], begun_at: int
) -> None:
    """However the two looks lie among its own steps, the slot's first."""
    stored = confirmed = begun_at
    seen = slot_at(confirmed)
    for move, number in moves:
        if move == "store":
            stored += number
        elif move == "confirm":
            confirmed = max(confirmed, stored - number)
        elif move == "look":
            seen = slot_at(confirmed)
        else:
            refuse_ahead("s", seen, stored)


@given(stored=st.integers(1, 2**62), by=st.integers(1, 2**62))
def test_a_slot_beyond_what_was_stored_is_refused(stored: int, by: int) -> None:
    with pytest.raises(CdcError) as caught:
        refuse_ahead("s", slot_at(stored + by), stored)
    assert caught.value.reason is Reason.SLOT_RECREATED


@given(confirmed=st.none() | st.integers(0, 2**62))
def test_nothing_is_said_where_nothing_is_known(confirmed: int | None) -> None:
    refuse_ahead("s", slot_at(confirmed), 0)
    refuse_ahead("s", slot_at(None), 1)
