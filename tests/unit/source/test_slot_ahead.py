"""A slot that is ahead of its connector is refused, but never one the connector itself moved."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.errors import CdcError, Reason
from cdc.source.server.slot import SlotState, refuse_ahead
from cdc.source.server.slot_watch import WatchedSlot

STEPS = st.sampled_from(["store", "report", "confirm", "end", "begin", "look"])
MOVES = st.lists(st.tuples(st.sampled_from(["store", "confirm", "look", "ask"]), st.integers(1, 9)))


def slot_at(confirmed: int | None, pid: int | None = None, by: str = "Debezium") -> SlotState:
    return SlotState(
        plugin="pgoutput",
        database="d",
        active_pid=pid,
        application=by if pid else "",
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
    """It passes at any interleaving with its steps, as long as the slot is read first."""
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
def test_an_unknown_position_is_not_refused(confirmed: int | None) -> None:
    refuse_ahead("s", slot_at(confirmed), 0)
    refuse_ahead("s", slot_at(None), 1)


@dataclass
class Connector:
    """A connector that stores before it confirms; the worker reports a stored position later."""

    stored: int = 100
    reported: int = 100
    confirmed: int = 100
    pid: int | None = None
    sessions: int = 0

    def __post_init__(self) -> None:
        self.followed = WatchedSlot("s", lambda: self.reported, clock=lambda: 0.0)

    def store(self, by: int) -> None:
        self.stored += by if self.pid else 0

    def report(self, _by: int) -> None:
        self.reported = self.stored

    def confirm(self, by: int) -> None:
        if self.pid:
            self.confirmed = max(self.confirmed, self.stored - by)

    def end(self, _by: int) -> None:
        self.pid = None

    def begin(self, by: int) -> None:
        if not self.pid:
            self.sessions += 1
            self.pid = self.sessions
            self.look(by)  # every session is seen

    def look(self, _by: int) -> None:
        self.followed.look(slot_at(self.confirmed, self.pid))


@given(steps=st.lists(st.tuples(STEPS, st.integers(1, 9)), max_size=60), by=st.integers(1, 9))
def test_a_slot_is_refused_when_others_moved_it_and_never_before(
    steps: list[tuple[str, int]], by: int
) -> None:
    chain = Connector()
    for step, number in steps:
        getattr(chain, step)(number)
    chain.end(0)
    chain.look(0)
    with pytest.raises(CdcError) as caught:
        chain.followed.look(slot_at(chain.stored + by))
    assert caught.value.reason is Reason.SLOT_RECREATED


def test_the_worker_is_asked_once_for_a_session_of_the_connector() -> None:
    asked = [130, 120, 110]
    followed = WatchedSlot("s", asked.pop)
    for confirmed in (100, 110, 200, 300):
        followed.look(slot_at(confirmed, 7))
    assert len(asked) == 2
    followed.look(slot_at(118, 8))
    assert len(asked) == 1
    followed.look(slot_at(119, None))
    assert len(asked) == 1


def test_a_slot_moved_by_another_reader_is_refused() -> None:
    followed = WatchedSlot("s", lambda: 110)
    followed.look(slot_at(100, 7, by="psql"))
    with pytest.raises(CdcError):
        followed.look(slot_at(120, 7, by="psql"))


@pytest.mark.parametrize("pid", [None, 7])
def test_a_slot_that_stays_ahead_is_refused_even_if_its_move_was_not_seen(pid: int | None) -> None:
    now = [0.0]
    followed = WatchedSlot("s", lambda: 110, clock=lambda: now[0])
    for at in (0.0, 4.9):
        now[0] = at
        followed.look(slot_at(120, pid))
    now[0] = 5.0
    with pytest.raises(CdcError):
        followed.look(slot_at(120, pid))


def test_a_slot_ahead_of_a_position_reported_late_is_not_refused() -> None:
    now, positions = [0.0], [130, 110]
    followed = WatchedSlot("s", positions.pop, clock=lambda: now[0])
    followed.look(slot_at(120))
    now[0] = 9.0
    followed.look(slot_at(120))
    assert not positions


def test_a_move_is_not_excused_by_a_session_that_was_not_seen() -> None:
    """A session may hide between two looks that are far apart."""
    now = [0.0]
    followed = WatchedSlot("s", lambda: 110, clock=lambda: now[0])
    followed.look(slot_at(100))
    now[0] = 1.6
    followed.look(slot_at(120))
    now[0] = 1.7
    with pytest.raises(CdcError):
        followed.look(slot_at(121))


def test_a_worker_that_does_not_answer_is_asked_again() -> None:
    asked = [110, 0, 0, 110]
    followed = WatchedSlot("s", asked.pop, clock=lambda: 0.0)
    for confirmed in (100, 120, 120):
        followed.look(slot_at(confirmed))
    with pytest.raises(CdcError):
        followed.look(slot_at(120))
