"""A topic's segment is ended without anything that a reader of events would see."""

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import TopicPartition

from cdc.failpoints import VARIABLE, Failpoint
from cdc.kafka.broker import Broker
from cdc.kafka.clients import reading_consumer
from cdc.kafka.empty_topic import empty_topic
from cdc.kafka.end_segment import end_segment
from cdc.kafka.topic_watch import existing_topics
from cdc.kafka.topics import TopicSpec, ensure_topics
from tests.source.capture.test_topics_go_on import fill, own_settings, settings_of

pytestmark = pytest.mark.integration

KILLED: Final = (
    "import sys; from cdc.kafka.broker import Broker; "
    "from cdc.kafka.end_segment import end_segment; "
    "end_segment(Broker(sys.argv[1]), sys.argv[2], 'w.forget')"
)


@pytest.fixture(params=["delete", "compact"])
def spec(request: pytest.FixtureRequest, broker: str) -> TopicSpec:
    """Create a topic of five events."""
    spec = TopicSpec(f"segments-{uuid.uuid4().hex}", {"cleanup.policy": request.param})
    ensure_topics(Broker(broker), [spec])
    fill(broker, spec.name, 5)
    return spec


def committed(broker: str, topic: str, count: int) -> list[int | None]:
    """Return the offsets of the first events that a reader of committed records sees."""
    consumer = reading_consumer(Broker(broker), topic)
    try:
        first = existing_topics(Broker(broker), [topic])[topic].first
        consumer.assign([TopicPartition(topic, 0, first)])
        return [event.offset() for event in consumer.consume(count, timeout=20)]
    finally:
        consumer.close()


def test_a_reader_of_events_sees_nothing_of_an_ended_segment(broker: str, spec: TopicSpec) -> None:
    first = end_segment(Broker(broker), spec.name, "w.forget")
    fill(broker, spec.name, 1)

    assert first == 5
    end = existing_topics(Broker(broker), [spec.name])[spec.name].end
    assert committed(broker, spec.name, 6) == [0, 1, 2, 3, 4, end - 1]
    assert own_settings(broker, spec.name) == {"cleanup.policy"}
    assert end_segment(Broker(broker), spec.name, "w.forget") == end


def test_the_events_before_can_be_deleted_and_those_after_stay(
    broker: str, spec: TopicSpec
) -> None:
    first = end_segment(Broker(broker), spec.name, "w.forget")
    fill(broker, spec.name, 1)

    assert empty_topic(Broker(broker), spec.name, before=first)

    now = existing_topics(Broker(broker), [spec.name])[spec.name]
    assert now.first == first
    assert committed(broker, spec.name, 1) == [now.end - 1]


@pytest.mark.parametrize("point", [Failpoint.BEFORE_SEGMENT_END, Failpoint.AFTER_SEGMENT_END])
def test_a_start_takes_back_what_a_kill_has_left(
    broker: str, spec: TopicSpec, tmp_path: Path, point: Failpoint
) -> None:
    (tmp_path / point).touch()
    done = subprocess.run(
        [sys.executable, "-c", KILLED, broker, spec.name],
        check=False,
        timeout=60,
        env=os.environ | {VARIABLE: str(tmp_path)},
    )
    assert done.returncode == -signal.SIGKILL
    is_left = point is Failpoint.AFTER_SEGMENT_END
    assert (settings_of(broker, spec.name)["segment.ms"] == "1") is is_left

    ensure_topics(Broker(broker), [spec])

    assert own_settings(broker, spec.name) == {"cleanup.policy"}
    assert committed(broker, spec.name, 5) == [0, 1, 2, 3, 4]
