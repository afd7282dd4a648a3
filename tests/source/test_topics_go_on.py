"""Topics that are not what they were, on a real broker: found out, and made to go on."""

from typing import Final

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined] # not all in its __all__
    AdminClient,
    NewPartitions,
)

from cdc.errors import CdcError, Reason
from cdc.kafka.continuing import Expected, refuse_broken
from cdc.kafka.emptying import empty_topic
from cdc.kafka.going_on import go_on
from cdc.kafka.offsets import end_offsets
from cdc.kafka.topics import TopicSpec, delete_topics, ensure_topics
from cdc.kafka.topics_found import TopicWatch, found
from tests.waiting import until

pytestmark = pytest.mark.integration

LANDED: Final = 41  # events, of 50


@pytest.fixture(params=["delete", "compact"])
def spec(request: pytest.FixtureRequest, broker: str) -> TopicSpec:
    """A topic of fifty events."""
    test = request.node.name.replace("[", "-").rstrip("]")
    made = TopicSpec(test, {"cleanup.policy": request.param})
    ensure_topics(broker, [made])
    fill(broker, made.name, 50)
    return made


def fill(broker: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker})
    for number in range(count):
        producer.produce(topic, key=f"{number}".encode(), value=b"event", partition=0)
    assert producer.flush(30) == 0


def expected(broker: str, spec: TopicSpec) -> dict[str, Expected]:
    return {spec.name: Expected(id=found(broker, [spec.name])[spec.name].id, last=LANDED - 1)}


def again(broker: str, spec: TopicSpec, *, count: int) -> None:
    """Deleted, and made by somebody else."""
    delete(broker, spec)
    ensure_topics(broker, [spec])
    fill(broker, spec.name, count)


def delete(broker: str, spec: TopicSpec) -> None:
    delete_topics(broker, [spec.name])
    until(lambda: not found(broker, [spec.name]))


def refusal(broker: str, known: dict[str, Expected]) -> Reason | None:
    with pytest.raises(CdcError) as caught:
        refuse_broken(known, found(broker, known))
    return caught.value.reason


def went_on(broker: str, spec: TopicSpec, known: dict[str, Expected]) -> None:
    """The next event has the offset after those of before, and none of them is there."""
    assert go_on(broker, known, [spec], replication=1) == [spec.name]
    now = found(broker, known)[spec.name]
    assert (now.partitions, now.first, now.end) == (1, LANDED, LANDED)
    fill(broker, spec.name, 1)
    assert events(broker, spec.name) == [(LANDED, b"event")]
    assert go_on(broker, known, [spec], replication=1) == []


def events(broker: str, topic: str) -> list[tuple[int | None, bytes | None]]:
    consumer = Consumer({"bootstrap.servers": broker, "group.id": topic})
    try:
        first, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)
        consumer.assign([TopicPartition(topic, 0, first)])
        read = consumer.consume(end - first, timeout=20)
        return [(event.offset(), event.value()) for event in read]
    finally:
        consumer.close()


def test_one_that_is_as_it_was(broker: str, spec: TopicSpec) -> None:
    known = expected(broker, spec)
    refuse_broken(known, found(broker, known))
    TopicWatch(broker, {topic: facts.id for topic, facts in known.items()}).look()
    assert go_on(broker, known, [spec], replication=1) == []
    assert len(events(broker, spec.name)) == 50


@pytest.mark.parametrize("count", [0, 30])
def test_one_that_was_made_again(broker: str, spec: TopicSpec, count: int) -> None:
    known = expected(broker, spec)
    watch = TopicWatch(broker, {spec.name: known[spec.name].id})
    watch.look()
    again(broker, spec, count=count)

    assert refusal(broker, known) is Reason.TOPIC_RECREATED
    with pytest.raises(CdcError, match="recreated"):
        watch.look()
    went_on(broker, spec, known)


def test_one_that_was_made_again_and_has_grown_beyond(broker: str, spec: TopicSpec) -> None:
    """By its offsets alone nobody could tell."""
    known = expected(broker, spec)
    again(broker, spec, count=60)
    assert refusal(broker, known) is Reason.TOPIC_RECREATED
    assert go_on(broker, known, [spec], replication=1) == []  # its offsets are new enough


def test_one_that_is_gone(broker: str, spec: TopicSpec) -> None:
    known = expected(broker, spec)
    watch = TopicWatch(broker, {spec.name: known[spec.name].id})
    delete(broker, spec)

    assert refusal(broker, known) is Reason.TOPIC_GONE
    with pytest.raises(CdcError, match="is gone"):
        watch.look()
    went_on(broker, spec, known)


def test_one_with_more_partitions(broker: str, spec: TopicSpec) -> None:
    known = expected(broker, spec)
    watch = TopicWatch(broker, {spec.name: known[spec.name].id})
    client = AdminClient({"bootstrap.servers": broker})
    client.create_partitions([NewPartitions(spec.name, 3)])[spec.name].result()
    until(lambda: found(broker, known)[spec.name].partitions == 3)

    assert refusal(broker, known) is Reason.TOPIC_PARTITIONS
    with pytest.raises(CdcError, match="3 partitions"):
        watch.look()
    went_on(broker, spec, known)


def test_one_that_was_shortened(broker: str, spec: TopicSpec) -> None:
    known = expected(broker, spec)
    empty_topic(broker, spec.name, before=LANDED)
    refuse_broken(known, found(broker, known))
    empty_topic(broker, spec.name, before=LANDED + 3)

    assert refusal(broker, known) is Reason.TOPIC_SHORTENED
    assert go_on(broker, known, [spec], replication=1) == []
    left = {spec.name: Expected(id=known[spec.name].id, last=49)}
    refuse_broken(left, found(broker, left))  # of an epoch that has left it behind


def test_the_ends_of_topics_that_were_made_a_moment_ago(broker: str) -> None:
    """Their leaders may not have taken them over yet."""
    names = [f"made-{number}" for number in range(40)]
    ensure_topics(broker, [TopicSpec(name) for name in names])
    assert end_offsets(broker, names) == dict.fromkeys(names, 0)
