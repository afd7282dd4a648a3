"""The inbox keeps every landing, but only so many bytes of events."""

import pyarrow as pa
import pytest

from cdc.land.inbox import Inbox
from cdc.land.landing import Landing, TopicSpan

ROWS = pa.table({"offset": [1, 2, 3]})


def landing(number: int) -> Landing:
    topics = {"t": TopicSpan(last=number, count=1)}
    return Landing(number=number, topics=topics, events=ROWS)


@pytest.mark.parametrize(
    ("room", "kept"), [(0, [4]), (1, [4]), (2, [1, 4]), (3, [1, 2, 4]), (4, [1, 2, 3, 4])]
)
def test_the_oldest_events_and_the_newest_stay_in_memory(room: int, kept: list[int]) -> None:
    inbox = Inbox(most_bytes=room * ROWS.nbytes)
    for number in range(1, 5):
        inbox.add(landing(number))

    waiting = inbox.waiting()
    assert waiting == [landing(number) for number in range(1, 5)]
    assert [found.number for found in waiting if found.events is not None] == kept


def test_room_is_free_again_when_landings_are_in_a_cut() -> None:
    inbox = Inbox(most_bytes=2 * ROWS.nbytes)
    inbox.add(landing(1))
    inbox.add(landing(2))
    inbox.drop(1)
    inbox.add(landing(3))

    assert all(found.events is not None for found in inbox.waiting())
