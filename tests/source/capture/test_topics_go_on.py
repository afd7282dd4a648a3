"""Detect topics that changed, and make them continue, on a real broker."""

import signal
import subprocess
import sys
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # not all in its __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    ResourceType,
)

from cdc.capture.refill_topics import refill_topics
from cdc.errors import CdcError, Reason
from cdc.kafka.broker import Broker
from cdc.kafka.empty_topic import empty_topic
from cdc.kafka.offsets import end_offsets
from cdc.kafka.same_topic import ExpectedTopic, refuse_broken
from cdc.kafka.topic_watch import TopicWatch, existing_topics
from cdc.kafka.topics import TopicSpec, delete_topics, ensure_topics
from tests.waiting import until

pytestmark = pytest.mark.integration

LANDED: Final = 41  # events, of 50


@pytest.fixture(params=["delete", "compact"])
def spec(request: pytest.FixtureRequest, broker: str) -> TopicSpec:
    """Create a topic of fifty events."""
    test = request.node.name.replace("[", "-").rstrip("]")
    spec = TopicSpec(test, {"cleanup.policy": request.param})
    ensure_topics(Broker(broker), [spec])
    fill(broker, spec.name, 50)
    return spec


def fill(broker: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker})
    for number in range(count):
        producer.produce(topic, key=f"{number}".encode(), value=b"event", partition=0)
    assert producer.flush(30) == 0


def expected(broker: str, spec: TopicSpec) -> dict[str, ExpectedTopic]:
    return {
        spec.name: ExpectedTopic(
            id=existing_topics(Broker(broker), [spec.name])[spec.name].id, last=LANDED - 1
        )
    }


def recreate(broker: str, spec: TopicSpec, *, count: int) -> None:
    """Delete the topic and create it again, as somebody else might."""
    delete(broker, spec)
    ensure_topics(Broker(broker), [spec])
    until(lambda: existing_topics(Broker(broker), [spec.name]))
    fill(broker, spec.name, count)


def delete(broker: str, spec: TopicSpec) -> None:
    delete_topics(Broker(broker), [spec.name])
    until(lambda: not existing_topics(Broker(broker), [spec.name]))


def refusal(broker: str, landed: dict[str, ExpectedTopic]) -> Reason | None:
    with pytest.raises(CdcError) as caught:
        refuse_broken(landed, existing_topics(Broker(broker), landed))
    return caught.value.reason


def assert_goes_on(broker: str, spec: TopicSpec, landed: dict[str, ExpectedTopic]) -> None:
    """Assert that the topic continues at the next offset, without earlier events."""
    assert refill_topics(Broker(broker), landed, [spec], replication=1) == [spec.name]
    now = existing_topics(Broker(broker), landed)[spec.name]
    assert (now.partitions, now.first, now.end) == (1, LANDED, LANDED)
    fill(broker, spec.name, 1)
    assert events(broker, spec.name) == [(LANDED, b"event")]
    assert refill_topics(Broker(broker), landed, [spec], replication=1) == []


def events(broker: str, topic: str) -> list[tuple[int | None, bytes | None]]:
    consumer = Consumer({"bootstrap.servers": broker, "group.id": topic})
    try:
        first, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)
        consumer.assign([TopicPartition(topic, 0, first)])
        read = consumer.consume(end - first, timeout=20)
        return [(event.offset(), event.value()) for event in read]
    finally:
        consumer.close()


def test_an_unchanged_topic_is_left_alone(broker: str, spec: TopicSpec) -> None:
    landed = expected(broker, spec)
    refuse_broken(landed, existing_topics(Broker(broker), landed))
    TopicWatch(Broker(broker), {topic: facts.id for topic, facts in landed.items()}).look(landed)
    assert refill_topics(Broker(broker), landed, [spec], replication=1) == []
    assert len(events(broker, spec.name)) == 50


@pytest.mark.parametrize("count", [0, 30])
def test_a_recreated_topic_is_noticed_and_continued(
    broker: str, spec: TopicSpec, count: int
) -> None:
    landed = expected(broker, spec)
    watch = TopicWatch(Broker(broker), {spec.name: landed[spec.name].id})
    watch.look([spec.name])
    recreate(broker, spec, count=count)

    assert refusal(broker, landed) is Reason.TOPIC_RECREATED
    with pytest.raises(CdcError, match="recreated"):
        watch.look([spec.name])
    assert_goes_on(broker, spec, landed)


def test_a_recreated_topic_with_higher_offsets_is_noticed(broker: str, spec: TopicSpec) -> None:
    """Its offsets alone would not show that it is another topic."""
    landed = expected(broker, spec)
    recreate(broker, spec, count=60)
    assert refusal(broker, landed) is Reason.TOPIC_RECREATED
    assert (
        refill_topics(Broker(broker), landed, [spec], replication=1) == []
    )  # its offsets are high enough


def test_a_deleted_topic_is_noticed_and_continued(broker: str, spec: TopicSpec) -> None:
    landed = expected(broker, spec)
    watch = TopicWatch(Broker(broker), {spec.name: landed[spec.name].id})
    delete(broker, spec)

    assert refusal(broker, landed) is Reason.TOPIC_GONE
    with pytest.raises(CdcError, match="no longer exists"):
        watch.look([spec.name])
    assert_goes_on(broker, spec, landed)


def test_a_topic_with_more_partitions_is_noticed_and_continued(
    broker: str, spec: TopicSpec
) -> None:
    landed = expected(broker, spec)
    watch = TopicWatch(Broker(broker), {spec.name: landed[spec.name].id})
    client = AdminClient({"bootstrap.servers": broker})
    client.create_partitions([NewPartitions(spec.name, 3)])[spec.name].result()
    until(lambda: existing_topics(Broker(broker), landed)[spec.name].partitions == 3)

    assert refusal(broker, landed) is Reason.TOPIC_PARTITIONS
    with pytest.raises(CdcError, match="3 partitions"):
        watch.look([spec.name])
    assert_goes_on(broker, spec, landed)


def test_a_topic_that_lost_unread_events_is_noticed(broker: str, spec: TopicSpec) -> None:
    landed = expected(broker, spec)
    empty_topic(Broker(broker), spec.name, before=LANDED)
    refuse_broken(landed, existing_topics(Broker(broker), landed))
    empty_topic(Broker(broker), spec.name, before=LANDED + 3)

    assert refusal(broker, landed) is Reason.TOPIC_SHORTENED
    assert refill_topics(Broker(broker), landed, [spec], replication=1) == []
    left = {spec.name: ExpectedTopic(id=landed[spec.name].id, last=49)}
    # This position is after the removed events.
    refuse_broken(left, existing_topics(Broker(broker), left))


KILLED: Final = """
import os, signal, sys
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from cdc.kafka.broker import Broker
from cdc.kafka.empty_topic import empty_topic
bootstrap, topic, request, side, number = sys.argv[1:]
real, left = getattr(AdminClient, request), int(number)
def kill_at(*arguments, **named):
    global left
    left -= 1
    if not left and side == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    answers = real(*arguments, **named)
    if not left:
        try:
            [future.result() for future in answers.values()]
        except KafkaException:  # the broker has not noticed the new policy: it is tried again
            left += 1
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return answers
setattr(AdminClient, request, kill_at)
empty_topic(Broker(bootstrap), topic)
"""
ALTER: Final = "incremental_alter_configs"
KILLS: Final = [
    (ALTER, "before", 1),
    (ALTER, "after", 1),
    ("delete_records", "before", 1),
    ("delete_records", "after", 1),
    (ALTER, "before", 2),
    (ALTER, "after", 2),
]


@pytest.mark.parametrize("kill", KILLS, ids=lambda kill: f"{kill[1]}-{kill[0]}-{kill[2]}")
@pytest.mark.parametrize("again", ["started", "emptied"])
def test_a_topic_has_its_settings_again_after_an_emptying_was_killed(
    broker: str, again: str, kill: tuple[str, str, int]
) -> None:
    """The next start or the next emptying restores it, and nothing expires in the meantime."""
    spec = TopicSpec(f"{again}-{'-'.join(map(str, kill))}", {"cleanup.policy": "compact"})
    ensure_topics(Broker(broker), [spec])
    before = settings_of(broker, spec.name)
    fill(broker, spec.name, 5)
    arguments = [broker, spec.name, *map(str, kill)]
    done = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    opened = kill not in (KILLS[0], KILLS[-1])
    until(lambda: ("delete" in settings_of(broker, spec.name)["cleanup.policy"]) is opened)
    left = settings_of(broker, spec.name)
    assert "compact" in left["cleanup.policy"]
    assert left["retention.ms"] == "-1" or "delete" not in left["cleanup.policy"]

    if again == "emptied":
        assert empty_topic(Broker(broker), spec.name)
        assert existing_topics(Broker(broker), [spec.name])[spec.name].first == 5
    else:
        ensure_topics(Broker(broker), [spec])
    assert settings_of(broker, spec.name) == before
    assert own_settings(broker, spec.name) == {"cleanup.policy"}


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
def test_a_cleanup_policy_that_somebody_else_set_is_refused(broker: str, policy: str) -> None:
    spec = TopicSpec(f"set-{policy.replace(',', '-')}", {"cleanup.policy": "compact"})
    ensure_topics(Broker(broker), [spec])
    set_policy(broker, spec.name, policy)
    assert empty_topic(Broker(broker), spec.name)
    with pytest.raises(CdcError, match=f"cleanup.policy={policy} and must have compact"):
        ensure_topics(Broker(broker), [spec])


def settings_of(broker: str, topic: str) -> dict[str, str]:
    return {name: entry.value for name, entry in entries_of(broker, topic).items()}


def own_settings(broker: str, topic: str) -> set[str]:
    own = ConfigSource.DYNAMIC_TOPIC_CONFIG.value
    return {name for name, entry in entries_of(broker, topic).items() if entry.source == own}


def entries_of(broker: str, topic: str) -> dict[str, Any]:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    client = AdminClient({"bootstrap.servers": broker})
    answers: dict[Any, Any] = client.describe_configs([resource])
    entries: dict[str, Any] = answers[resource].result()
    return entries


def set_policy(broker: str, topic: str, policy: str) -> None:
    entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = AdminClient({"bootstrap.servers": broker})
    answers: dict[Any, Any] = client.incremental_alter_configs([resource])
    answers[resource].result()
    until(lambda: settings_of(broker, topic)["cleanup.policy"] == policy)


def test_new_topics_have_an_end(broker: str) -> None:
    """New partitions may not have leaders yet, which is waited for."""
    names = [f"made-{number}" for number in range(40)]
    ensure_topics(Broker(broker), [TopicSpec(name) for name in names])
    assert end_offsets(Broker(broker), names) == dict.fromkeys(names, 0)
