"""A topic that was made anew is filled up also where the broker has not heard of it at once."""

from collections.abc import Mapping

import pytest

from cdc.kafka import going_on
from cdc.kafka.continuing import Expected, Found
from cdc.kafka.topics import TopicSpec

TOPIC = "w.a.b"
MADE = Found(id="new", partitions=1, first=0, end=0)


def test_a_topic_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would begin at offset 0 again, where events of before have been."""
    answers = iter([{}, {}, {}, {TOPIC: MADE}])
    filled: list[tuple[str, Found, int]] = []

    def found(_bootstrap: str, _topics: object) -> Mapping[str, Found]:
        return next(answers)

    def fill(_bootstrap: str, topic: str, now: Found, last: int) -> None:
        filled.append((topic, now, last))

    monkeypatch.setattr(going_on, "found", found)
    monkeypatch.setattr(going_on, "_fill", fill)
    monkeypatch.setattr(going_on, "delete_topics", lambda *_: None)
    monkeypatch.setattr(going_on, "ensure_topics", lambda *_, **__: None)

    known, spec = {TOPIC: Expected(id="old", last=40)}, TopicSpec(TOPIC, {})
    assert going_on.go_on("broker", known, [spec], replication=1) == [TOPIC]

    assert filled == [(TOPIC, MADE, 40)]
