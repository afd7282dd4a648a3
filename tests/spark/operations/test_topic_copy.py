"""A table rebuilt from a real topic, compacted or not, is right, or refused with the reason."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined] # not in its __all__
from pyspark.sql import SparkSession

from cdc.apply.log_replay import Recorded
from cdc.apply.table.applied_table import AppliedTable
from cdc.errors import CdcError, ErrorKind
from cdc.events import avro
from cdc.events.envelope import NEW_KEY, OLD_KEY
from cdc.kafka.broker import Broker
from cdc.kafka.clients import admin
from cdc.kafka.topic_facts import TopicFacts, topic_facts
from cdc.kafka.topics import SECONDS
from cdc.operations.desk.context import RebuildContext
from cdc.operations.replay import topic_copy
from cdc.operations.replay.inputs import FromKafka, rebuild_from_kafka
from cdc.operations.replay.material import FirstSchema, Hooks, Material, ReplayEnd
from cdc.operations.replay.topic_copy import TopicCopy
from cdc.waiting import until
from tests.events.source import LARGE, SCHEMA_ID, TABLE, TOPIC, Source
from tests.local_spark import frame_of
from tests.spark.rebuilding import PLACEHOLDER, SCHEMAS, TOASTY, by_id, changes, expected, factory

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.deep]

KEY_ID, OTHER_KEY_ID, NO_KEY_ID = 50, 51, 52
HOISTED = (
    '{"type": "record", "name": "K", "fields": [{"name": "key", "type": {"type": "record", '
    '"name": "Key", "fields": [{"name": "id", "type": "%s"}]}}]}'
)
REGISTRY = SCHEMAS | {
    KEY_ID: HOISTED % "int",
    OTHER_KEY_ID: HOISTED % "long",
    NO_KEY_ID: '{"type": "record", "name": "A", "fields": [{"name": "key", "type": "null"}]}',
}
KEPT = {"cleanup.policy": "delete", "retention.ms": "-1"}
COMPACTED = {
    "cleanup.policy": "compact",
    "min.compaction.lag.ms": "0",
    "min.cleanable.dirty.ratio": "0.001",
    "segment.ms": "500",
    "delete.retention.ms": "600000",
}
CLEANED_SECONDS = 90
EVERY: dict[str, int | None] = dict.fromkeys(LARGE, 3)
"""Sets all large values to new ones."""


@dataclass(kw_only=True)
class Topic:
    """One topic, and what it takes to rebuild a table from it."""

    kafka: str
    session: SparkSession
    root: Path
    name: str
    settings: dict[str, str]
    sent: int = field(default=0)

    def __post_init__(self) -> None:
        new = NewTopic(self.name, num_partitions=1, replication_factor=1, config=self.settings)
        client = admin(Broker(self.kafka))  # in a variable: a collected client drops its requests
        client.create_topics([new])[self.name].result()

    def send(self, source: Source, key_id: int = KEY_ID) -> None:
        """Send the source's new records, each at the offset that the source says."""
        producer = Producer({"bootstrap.servers": self.kafka})
        moved = {*source.moved}
        for offset, value in source.log:
            if offset < self.sent:
                continue
            headers: list[tuple[str, str | bytes | None]] = []
            if value["op"] == "d" and offset + 2 in moved:
                headers = [(NEW_KEY, b"{}")]
            elif offset in moved:
                headers = [(OLD_KEY, b"{}")]
            key = _key(value, key_id)
            data = avro.encode(SCHEMAS[SCHEMA_ID], SCHEMA_ID, value)
            producer.produce(self.name, data, key, headers=headers)
            if value["op"] == "d":
                producer.produce(self.name, None, key, headers=headers)
        producer.flush()
        self.sent = source.offset

    def await_cleaned(self, most: int) -> None:
        """Wait until compaction has left at most so many records below the active segment."""
        producer = Producer({"bootstrap.servers": self.kafka})

        def cleaned() -> bool:
            # The first record after a segment's time begins the next: this one is alone in it.
            producer.produce(self.name, *_filler())
            producer.flush()
            return self.left() <= most

        until(cleaned, CLEANED_SECONDS, f"{self.name} was not compacted")

    def left(self) -> int:
        """Count the source's records that the topic still has."""
        rows = topic_copy._events(
            self.session, Broker(self.kafka), topic_facts(Broker(self.kafka), self.name)
        )
        return rows.where(f"offset < {self.sent}").count()

    def take(self, upto: int | None = None) -> TopicCopy:
        folder = str(self.root / f"taken-{time.monotonic_ns()}")
        found = topic_copy.copy_topic(
            self.session, Broker(self.kafka), self.name, folder, upto=upto, span=20
        )
        topic_copy.check(found, known, PLACEHOLDER)
        return found

    def table(self, found: TopicCopy, upto: int) -> AppliedTable:
        tables = factory(self.root)
        material = Material(
            recorded=Recorded(
                rows=found.rows, topic=self.name, notes=[], schemas_of=known, budget=50
            ),
            events_from="kafka",
            first_landing=1,
            readings=[],
            first=FirstSchema(note=None, known=TOASTY),
            tables=tables,
        )
        end = ReplayEnd(epoch=1, upto=upto, notes=-1)
        source = FromKafka(material=material, copied=found, end=end)
        context = RebuildContext(
            session=self.session,
            config=None,  # type: ignore[arg-type] # only names paths, which are given here
            schemas_of=known,
            factory=tables,
        )
        path = str(self.root / "table")
        return rebuild_from_kafka(context, source, TABLE, path, Hooks())


def known(ids: Any) -> dict[int, str]:  # noqa: ANN401 - any iterable
    return {number: REGISTRY[number] for number in ids if number in REGISTRY}


def _key(value: dict[str, Any], key_id: int) -> bytes:
    row = value["before"] or value["after"]
    if row is None:  # a truncate
        return avro.encode(REGISTRY[NO_KEY_ID], NO_KEY_ID, {"key": None})
    return avro.encode(REGISTRY[key_id], key_id, {"key": {"id": row["id"]}})


def _filler() -> tuple[bytes, bytes]:
    """Return a record with a key of its own, whose row the table has in the end."""
    source = Source(placeholder=PLACEHOLDER)
    source.insert(FILLER, 0, None)
    value = source.log[0][1]
    return avro.encode(SCHEMAS[SCHEMA_ID], SCHEMA_ID, value), _key(value, KEY_ID)


FILLER = 999


@pytest.fixture
def make(broker: str, spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Any:  # noqa: ANN401
    def topic(settings: dict[str, str]) -> Topic:
        name = request.node.name.partition("[")[0][:80]
        return Topic(
            kafka=broker, session=spark.newSession(), root=tmp_path, name=name, settings=settings
        )

    return topic


def deep(request: pytest.FixtureRequest) -> None:
    """Skip the test without --deep, since Kafka's cleaner runs every fifteen seconds only."""
    if not request.config.getoption("--deep"):
        pytest.skip("compaction takes its time: --deep")


def refusal(act: Any) -> CdcError:  # noqa: ANN401
    with pytest.raises(CdcError) as caught:
        act()
    assert caught.value.kind is ErrorKind.CHAIN_BROKEN
    assert caught.value.remedy
    return caught.value


def test_a_table_rebuilt_from_a_whole_topic_equals_the_reference(make: Any) -> None:  # noqa: ANN401
    """A rebuild at a cut equals the reference."""
    topic, source = make(KEPT), changes(1, 60)
    topic.send(source)
    cut = source.log[-1][0]

    table = topic.table(topic.take(cut), cut)

    assert by_id(topic.session, table) == expected(source.events(), cut)


def test_a_topic_whose_beginning_was_removed_is_refused(make: Any) -> None:  # noqa: ANN401
    topic, source = make(KEPT), changes(1, 20)
    topic.send(source)
    where = TopicPartition(topic.name, 0, 8)
    client = admin(Broker(topic.kafka))  # in a variable: a collected client drops its requests
    client.delete_records([where])[where].result(SECONDS)

    assert "begins at offset 8: retention removed the rest" in refusal(topic.take).message


def test_a_schema_that_the_registry_lacks_is_named(
    make: Any,  # noqa: ANN401
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic, source = make(KEPT), changes(1, 5)
    topic.send(source)
    monkeypatch.delitem(REGISTRY, SCHEMA_ID)

    assert f"lacks schema {SCHEMA_ID}" in refusal(topic.take).message


def test_keys_of_two_forms_are_not_compacted_together(make: Any) -> None:  # noqa: ANN401
    topic, source = make(COMPACTED), Source(placeholder=PLACEHOLDER)
    source.insert(1, 1, 1)
    topic.send(source)
    source.delete(1)
    topic.send(source, OTHER_KEY_ID)

    assert "2 forms" in refusal(topic.take).message


def test_a_cut_that_a_later_event_may_have_compacted_is_refused(make: Any) -> None:  # noqa: ANN401
    topic, source = make(COMPACTED), changes(1, 20)
    topic.send(source)
    last = source.log[-1][0]

    assert "may be gone for later ones" in refusal(lambda: topic.take(last - 5)).message
    assert topic.take(last).facts.compacted


def test_a_table_rebuilt_from_a_compacted_topic_equals_the_source(
    make: Any,  # noqa: ANN401
    request: pytest.FixtureRequest,
) -> None:
    """Deletes, a truncate and large values that are sent each time."""
    deep(request)
    topic, source = make(COMPACTED), Source(placeholder=PLACEHOLDER)
    for number in range(8):
        source.insert(number, 0, 1)
    source.truncate()
    for number in range(2, 6):
        source.insert(number, 1, 1)
        source.update(number, 2, EVERY)
        source.update(number, 3, EVERY)
    source.delete(4)
    source.insert(FILLER, 0, None)
    topic.send(source)
    before = topic.left()
    topic.await_cleaned(before // 2)

    found = topic.take()
    table = topic.table(found, found.facts.end - 1)

    assert topic.left() < before
    assert by_id(topic.session, table) == source.rows


def test_rows_whose_values_only_removed_events_had_are_counted(
    make: Any,  # noqa: ANN401
    request: pytest.FixtureRequest,
) -> None:
    deep(request)
    topic, source = make(COMPACTED), Source(placeholder=PLACEHOLDER)
    source.insert(1, 0, 1)
    source.insert(2, 0, 1)
    source.update(2, 5, {})
    topic.send(source)
    topic.await_cleaned(2)

    error = refusal(lambda: topic.table(found := topic.take(), found.facts.end - 1))

    assert "1 of its events cannot be applied alone" in error.message
    assert "offset 2" in error.detail


@pytest.mark.parametrize(("apart", "leaves_out"), [(2, True), (5, False), (5, True)])
def test_the_second_event_of_a_changed_key_is_not_paired_with_another_change(
    spark: SparkSession, apart: int, leaves_out: bool
) -> None:
    """Compaction may remove everything between the first half of one and the second of another."""
    source = Source(placeholder=PLACEHOLDER)
    source.insert(1, 0, 1)
    source.rekey(1, 2, {} if leaves_out else EVERY)
    second = avro.encode(SCHEMAS[SCHEMA_ID], SCHEMA_ID, source.log[-1][1])
    key = _key(source.log[-1][1], KEY_ID)
    rows = [
        (7, b"first", None, None, [(NEW_KEY, b"{}")]),
        (8, None, None, None, [(NEW_KEY, b"{}")]),
        (7 + apart, second, key, KEY_ID, [(OLD_KEY, b"{}")]),
    ]
    frame = frame_of(spark, rows, f"offset bigint, value binary, key binary, {_MORE}")
    facts = TopicFacts(
        topic=TOPIC,
        first=0,
        end=20,
        policy="compact",
        min_compaction_lag_ms=0,
        delete_retention_ms=1000,
    )
    found = TopicCopy(
        topic=TOPIC, rows=frame.selectExpr("*", "127 AS value_schema_id"), facts=facts
    )

    if apart > 2 and leaves_out:
        error = refusal(lambda: topic_copy.check(found, known, PLACEHOLDER))
        assert "1 events leave out values" in error.message
        assert f"offset {7 + apart}" in error.detail
    else:
        topic_copy.check(found, known, PLACEHOLDER)


_MORE = "key_schema_id int, headers array<struct<key: string, value: binary>>"


def test_a_changed_key_without_its_first_event_takes_no_other_row_s_values(
    make: Any,  # noqa: ANN401
    request: pytest.FixtureRequest,
) -> None:
    deep(request)
    topic, source = make(COMPACTED), Source(placeholder=PLACEHOLDER)
    for number in (1, 2):
        source.insert(number, 0, number)
    source.rekey(1, 11, {})
    source.rekey(2, 12, {})
    source.update(11, 1, EVERY)
    topic.send(source)
    topic.await_cleaned(4)

    error = refusal(topic.take)

    assert "1 events leave out values" in error.message
