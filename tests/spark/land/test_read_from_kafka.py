"""Records that this process reads from Kafka are those that Spark's Kafka source reads."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession

from cdc.kafka.broker import Broker
from cdc.kafka.clients import admin
from cdc.kafka.offsets import end_offsets
from cdc.kafka.range_reader import RangeReader
from cdc.land.arrow_rows import arrow_rows
from cdc.land.kafka_rows import read_rows
from tests.servers.fixtures import started

pytestmark = [pytest.mark.spark, pytest.mark.integration]
TOPICS = ("plain", "moved", "empty", "aborted")
HEADERS: list[tuple[str, Any]] = [("h", b"1"), ("h", None), ("", b"")]
LANDED_AT = datetime(2026, 1, 1, tzinfo=UTC)
SHORT = 1000  # bytes


@pytest.fixture(scope="module")
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Yield the address of a broker whose topics have records, markers and holes."""
    with started(request, tmp_path_factory.mktemp("kafka"), ("kafka",)) as servers:
        address = servers["kafka"].address
        topics = [NewTopic(name, num_partitions=1, replication_factor=1) for name in TOPICS]
        client = admin(Broker(address))
        for made in client.create_topics(topics).values():
            made.result()
        produce(address)
        yield address


def produce(address: str) -> None:
    """Write records of every form in transactions, one of which is aborted."""
    producer = Producer({"bootstrap.servers": address, "transactional.id": "t"})
    producer.init_transactions()
    producer.begin_transaction()
    for number in range(300):
        producer.produce("plain", value=b"v" * number, key=str(number), timestamp=1 + number)
    producer.produce("moved", value=None, key=b"k")
    producer.produce("moved", value=b"", key=None, headers=HEADERS)
    producer.produce("moved", value=b"\x00\x00\x00\x00\x07x", key=b"")
    producer.commit_transaction()
    producer.begin_transaction()
    producer.produce("aborted", value=b"never")
    producer.produce("plain", value=b"never")
    producer.flush()
    producer.abort_transaction()
    producer.begin_transaction()
    producer.produce("plain", value=b"last", key=b"k")
    producer.commit_transaction()


def whole(kafka: str) -> dict[str, range]:
    """Return the ranges from the beginning of each topic to its end."""
    ends = end_offsets(Broker(kafka), list(TOPICS), committed=True)
    return {topic: range(end) for topic, end in ends.items()}


def by_spark(spark: SparkSession, kafka: str, ranges: dict[str, range]) -> pa.Table:
    starting = {topic: {"0": offsets.start} for topic, offsets in ranges.items()}
    ending = {topic: {"0": offsets.stop} for topic, offsets in ranges.items()}
    found = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", kafka)
        .option("subscribe", ",".join(ranges))
        .option("startingOffsets", json.dumps(starting))
        .option("endingOffsets", json.dumps(ending))
        .option("kafka.isolation.level", "read_committed")
        .option("includeHeaders", "true")
        .load()
    )
    return arrow_rows(found.toArrow(), 1, LANDED_AT)


def here(kafka: str, ranges: dict[str, range]) -> pa.Table | None:
    reader = RangeReader(Broker(kafka), group="test")
    try:
        found = read_rows(reader, ranges)
    finally:
        reader.close()
    return None if found is None else arrow_rows(found, 1, LANDED_AT)


def test_whole_topics_are_read_alike(spark: SparkSession, kafka: str) -> None:
    ranges = whole(kafka)

    rows = here(kafka, ranges)

    assert rows is not None
    assert len(rows) == 300 + 3 + 1
    assert rows.equals(by_spark(spark, kafka, ranges))


@pytest.mark.parametrize("parts", [{"plain": range(7, 150)}, {"plain": range(299, 303)}])
def test_parts_of_topics_are_read_alike(
    spark: SparkSession, kafka: str, parts: dict[str, range]
) -> None:
    """The second part begins with a record; an aborted one and markers of transactions follow."""
    ranges = {**whole(kafka), **parts, "moved": range(1, 2)}

    rows = here(kafka, ranges)

    assert rows is not None
    assert rows.equals(by_spark(spark, kafka, ranges))


def test_one_reader_reads_range_after_range(kafka: str) -> None:
    reader = RangeReader(Broker(kafka), group="test")
    ranges = whole(kafka)
    steps = [{**ranges, "plain": range(at, at + 50)} for at in range(0, 300, 50)]

    found = [reader.read(step, 1 << 20) for step in steps]

    reader.close()
    places = [[(m.topic(), m.offset()) for m in step or []] for step in found]
    assert [[at for topic, at in step if topic == "plain"] for step in places] == [
        list(step["plain"]) for step in steps
    ]
    assert all(len([1 for topic, _ in step if topic == "moved"]) == 3 for step in places)


def test_what_kafka_does_not_have_is_left_to_spark(kafka: str) -> None:
    reader = RangeReader(Broker(kafka), group="test")
    ranges = whole(kafka)
    beyond = ranges["plain"].stop + 5

    found = [
        reader.read({"plain": range(beyond, beyond + 1)}, 1 << 20),
        reader.read({"plain": range(ranges["plain"].stop + 1)}, 1 << 20, seconds=1.0),
        reader.read({"no_such_topic": range(1)}, 1 << 20),
        reader.read(ranges, SHORT),
    ]

    reader.close()
    assert found == [None] * 4
