"""The topics that there are, and the messages and schemas in them."""

import pytest

from cdc.capture.bootstrap import establish
from cdc.capture.continuity import marker_topic
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.offsets import end_offsets
from cdc.kafka.registry_client import RegistryClient
from cdc.kafka.topics import TopicSpec, delete_topics, ensure_topics, topic_ids
from cdc.source.connector import worker_rest
from cdc.source.server import slot
from cdc.source.server.connection import Connection, connect
from cdc.stack.supervise.connector_watch import Absence, ConnectorWatch
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from cdc.waiting import until
from tests.source.conftest import Maker
from tests.source.connector_tasks import tasks
from tests.source.topic import Event, Topic, ops

pytestmark = pytest.mark.integration


def test_topics(chain: Endpoints) -> None:
    compact = {"cleanup.policy": "compact", "delete.retention.ms": "1234"}
    for _ in range(2):
        ensure_topics(chain.kafka, [TopicSpec("one", compact), TopicSpec("two")])
    first = topic_ids(chain.kafka, ["one", "two", "three"])
    assert set(first) == {"one", "two"}
    assert end_offsets(chain.kafka, ["one", "three"]) == {"one": 0}
    with pytest.raises(CdcError) as caught:
        ensure_topics(chain.kafka, [TopicSpec("one", {"cleanup.policy": "delete"})])
    assert caught.value.kind is ErrorKind.CONFLICT
    assert "cleanup.policy=compact" in caught.value.message
    delete_topics(chain.kafka, ["one", "three"])
    ensure_topics(chain.kafka, [TopicSpec("one", compact)])
    again = topic_ids(chain.kafka, ["one", "two"])
    assert again["two"] == first["two"]
    assert again["one"] != first["one"]


def test_registry(chain: Endpoints) -> None:
    client = RegistryClient(chain.registry)
    assert client.schema(2**31 - 1) is None
    assert client.schemas([2**31 - 1]) == {}


def test_messages_of_others_are_passed_over(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """It holds for any prefix, in and outside of transactions, and across a task's restart."""
    config = make_config(chain)
    source.execute("CREATE TABLE t (id int PRIMARY KEY)")
    establish(Pipeline(config, chain))
    topic = Topic(chain, f"{config.name}.{config.name}.t")
    for transactional in (True, False):
        for prefix in ("app", "", " ", "a\nb", "a,b", ".", "\u00c4", "x" * 60):
            emit(source, prefix, transactional=transactional)
    with source.transaction():
        source.execute("INSERT INTO t VALUES (1)")
        emit(source, "app", "m" * 200_000, transactional=True)
        source.execute("INSERT INTO t VALUES (2)")
    topic.until(lambda found: ops(found) == ["c", "c"])

    with connect(chain.source_url) as other, other.transaction():
        # Its changes precede in the WAL a message that arrives before them.
        other.execute(f"INSERT INTO {config.name}.t VALUES (3)".encode())
        emit(source, "app", transactional=False)
        source.execute("INSERT INTO t VALUES (4)")
        topic.until(lambda found: len(found) >= 3)
        worker_rest.stop(chain.connect, config.name)
        until(lambda: not slot.is_read(source, config.name), 30, "still in use")
        emit(source, "app", transactional=False)
        worker_rest.resume(chain.connect, config.name)
    events = topic.until(lambda found: len(found) >= 4)
    assert [value["after"]["id"] for _, value in events] == [1, 2, 4, 3]
    ends = Topic(chain, marker_topic(config)).until(lambda found: len(_counts(found, topic)) >= 3)
    assert _counts(ends, topic) == [2, 1, 1]  # messages do not count as events of a transaction


def test_a_topic_that_is_not_there_fails_the_task_by_its_name(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """It must not wait for ever in state RUNNING; the test shortens the wait."""
    config = make_config(chain)
    source.execute("CREATE TABLE t (id int PRIMARY KEY)")
    establish(Pipeline(config, chain))
    wanted = worker_rest.configuration(chain.connect, config.name)
    assert wanted is not None
    assert wanted["producer.override.max.block.ms"] == "60000"
    told = {name: text for name, text in wanted.items() if not name.startswith("message.prefix")}
    told["producer.override.max.block.ms"] = "5000"
    worker_rest.configure(chain.connect, config.name, told)
    topic = Topic(chain, f"{config.name}.{config.name}.t")
    source.execute("INSERT INTO t VALUES (1)")
    topic.until(lambda found: ops(found) == ["c"])
    emit(source, "app", transactional=True)
    until(lambda: "FAILED" in tasks(chain, config.name), 60, "it waits for the topic")
    watch = ConnectorWatch(chain.connect, config.name, Absence(lambda: True))
    assert f"Topic {config.name}.message not present in metadata" in str(watch.look(0))


def emit(connection: Connection, prefix: str, content: str = "x", *, transactional: bool) -> None:
    connection.execute(
        "SELECT pg_logical_emit_message(%s, %s, %s)", (transactional, prefix, content)
    )


def _counts(events: list[Event], topic: Topic) -> list[int]:
    """Return the END marker's event count of each transaction with events in the topic."""
    found = []
    for _, value in events:
        if value["status"] == "END" and any(
            topic.name.endswith(each["data_collection"]) for each in value["data_collections"] or ()
        ):
            assert value["event_count"] == sum(
                each["event_count"] for each in value["data_collections"]
            )
            found.append(value["event_count"])
    return found
