"""A landing counts as applied once every followed topic in it is."""

import pytest

from cdc.land.landing import Landing, TopicSpan, beyond, floor


def landing(number: int, **last: int) -> Landing:
    spans = {topic: TopicSpan(last=offset, count=offset) for topic, offset in last.items()}
    return Landing(number=number, topics=spans)


LANDINGS = [landing(1, a=4, b=4), landing(2, a=8, gone=3), landing(3, b=9)]


@pytest.mark.parametrize(
    ("applied", "left", "upto"),
    [
        ({"a": -1, "b": -1}, [landing(1, a=4, b=4), landing(2, a=8), landing(3, b=9)], 0),
        ({"a": 4, "b": -1}, [landing(1, b=4), landing(2, a=8), landing(3, b=9)], 0),
        ({"a": 5, "b": 4}, [landing(2, a=8), landing(3, b=9)], 1),
        ({"a": 8, "b": 8}, [landing(3, b=9)], 2),
        ({"a": 8, "b": 9}, [], 3),
        ({"b": 9}, [], 3),
    ],
)
def test_topics_that_are_not_followed_do_not_hold_landings_up(
    applied: dict[str, int], left: list[Landing], upto: int
) -> None:
    assert beyond(LANDINGS, applied) == left
    assert floor(LANDINGS, applied, 0) == upto
