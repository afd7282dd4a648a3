"""After a restart of everything, no server has lost anything and nothing is repeated."""

from collections.abc import Mapping
from typing import Any

import httpx
import psycopg
import pytest
from confluent_kafka import Consumer, TopicPartition

from cdc.capture.bootstrap import establish
from cdc.capture.topic_specs import debezium_heartbeat_topic
from cdc.config import Config
from cdc.kafka.topics import topic_ids
from cdc.source.connector import worker_rest
from cdc.stack.embedded import EmbeddedStack, running
from cdc.state.directory import StateDir
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from cdc.tables import HEARTBEAT
from tests.stack.conftest import ours
from tests.waiting import until

pytestmark = pytest.mark.integration

TOPIC = "wal2lake.public.kept"
BEATS = {
    f"{topic}-{part}"
    for topic in (debezium_heartbeat_topic("wal2lake"), HEARTBEAT.topic("wal2lake"))
    for part in ("key", "value")
}
"""The subjects of heartbeats, which come last because nothing but time causes them."""


def messages(kafka: str) -> list[bytes | None]:
    """Return every committed value of the topic."""
    options = {
        "bootstrap.servers": kafka,
        "group.id": "test",
        "isolation.level": "read_committed",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    consumer = Consumer(options)
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    values: list[bytes | None] = []
    try:
        while (message := consumer.poll(30)) is not None and message.error() is None:
            values.append(message.value())
    finally:
        consumer.close()
    return values


def schemas(registry: str) -> dict[str, Any]:
    """Return every subject with its version 1, through Confluent's API."""
    base = f"{registry}/apis/ccompat/v7"
    subjects = httpx.get(f"{base}/subjects", timeout=10).json()
    return {
        subject: httpx.get(f"{base}/subjects/{subject}/versions/1", timeout=10).json()
        for subject in subjects
    }


def source_offset(endpoints: Endpoints) -> Mapping[str, Any]:
    url = f"{endpoints.connect}/connectors/wal2lake/offsets"
    (one,) = httpx.get(url, timeout=10).json()["offsets"]
    offset: Mapping[str, Any] = one["offset"]
    return offset


def execute(endpoints: Endpoints, statement: str) -> None:
    with psycopg.connect(endpoints.source_url) as connection:
        connection.execute(statement)


def test_topics_offsets_and_schemas_survive(config: Config, state: StateDir) -> None:
    with running(config) as endpoints:
        execute(endpoints, "CREATE TABLE kept (id int PRIMARY KEY, note text)")
        establish(Pipeline(config, endpoints))
        execute(endpoints, "INSERT INTO kept SELECT i, 'row' FROM generate_series(1, 50) i")
        until(lambda: len(messages(endpoints.kafka.bootstrap)) == 50)
        execute(endpoints, "INSERT INTO kept VALUES (51, 'one more')")
        until(lambda: len(messages(endpoints.kafka.bootstrap)) == 51)
        before = messages(endpoints.kafka.bootstrap)
        until(lambda: set(schemas(endpoints.registry)) >= BEATS)
        known = schemas(endpoints.registry)
        ids = topic_ids(endpoints.kafka, [TOPIC])
        assert TOPIC in ids
        position = source_offset(endpoints)
    assert ours(state) == []
    assert {f"{TOPIC}-key", f"{TOPIC}-value"} <= set(known)

    with running(config) as endpoints:
        assert schemas(endpoints.registry) == known
        assert topic_ids(endpoints.kafka, [TOPIC]) == ids
        assert messages(endpoints.kafka.bootstrap) == before
        assert source_offset(endpoints)["lsn"] >= position["lsn"]
        execute(endpoints, "INSERT INTO kept VALUES (52, 'after')")
        until(lambda: len(messages(endpoints.kafka.bootstrap)) > 51)
        after = messages(endpoints.kafka.bootstrap)
        assert after[:51] == before
        assert len(after) == 52
        written_with = int.from_bytes((after[51] or b"")[1:5])
        assert written_with == known[f"{TOPIC}-value"]["id"]
    assert ours(state) == []


def test_a_task_that_ended_while_the_registry_was_away_starts_again(
    config: Config, state: StateDir
) -> None:
    with EmbeddedStack(config) as stack:
        endpoints = stack.start()
        execute(endpoints, "CREATE TABLE kept (id int PRIMARY KEY)")
        establish(Pipeline(config, endpoints))
        execute(endpoints, "INSERT INTO kept VALUES (1)")
        until(lambda: len(messages(endpoints.kafka.bootstrap)) == 1)  # a position in the stream
        stack.processes["registry"].stop()
        execute(endpoints, "ALTER TABLE kept ADD COLUMN note text")  # a schema it must register
        execute(endpoints, "INSERT INTO kept VALUES (2, 'while it was away')")
        until(lambda: failed(endpoints))

        stack.spawn(stack.servers["registry"])
        stack.await_ready(stack.servers["registry"])
        establish(Pipeline(config, endpoints))
        assert not failed(endpoints)
        until(lambda: len(messages(endpoints.kafka.bootstrap)) == 2)
    assert ours(state) == []


def failed(endpoints: Endpoints) -> bool:
    status = worker_rest.status(endpoints.connect, "wal2lake")
    return status is not None and status.failed
