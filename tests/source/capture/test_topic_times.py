"""Appended records have the broker's time, whatever the producer's clock says."""

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Message, Producer
from confluent_kafka.admin import ResourceType  # type: ignore[attr-defined] # not in its __all__

from cdc.capture.topic_specs import topic_specs
from cdc.kafka.topics import TopicSpec, ensure_topics
from cdc.source.catalog.catalog import SourceTable
from cdc.tables import TableId, TableMode
from tests.source.altered import altered
from tests.source.conftest import Maker

pytestmark = pytest.mark.integration

HOURS: Final = (-30 * 24, 2, 30 * 24)  # by default a broker refuses times an hour ahead
STAMPED: Final = "log.message.timestamp.type"
TABLES: Final = [
    SourceTable(
        table=TableId("public", mode.value),
        oid=1,
        columns=(),
        key=("id",),
        mode=mode,
        replica_identity="d",
    )
    for mode in TableMode
]


@pytest.mark.parametrize("hours", HOURS)
def test_of_the_worker_and_the_registry(broker: str, hours: int) -> None:
    """They create their topics themselves, with the broker's defaults."""
    ensure_topics(broker, [TopicSpec("default")])
    assert kept_time(broker, "default", hours)


@pytest.mark.parametrize("hours", HOURS)
def test_of_tables_where_the_broker_leaves_it_to_producers(
    broker: str, make_config: Maker, hours: int
) -> None:
    specs = topic_specs(make_config(), TABLES)
    with altered(broker, ResourceType.BROKER, ("1",), STAMPED, "CreateTime"):  # Kafka's default
        ensure_topics(broker, specs)
        assert all(kept_time(broker, spec.name, hours) for spec in specs)


def kept_time(broker: str, topic: str, hours: int) -> bool:
    """Return whether a record with a wrong time is accepted, and gets the broker's time."""
    found: list[tuple[int, int]] = []

    def told(error: object, message: Message) -> None:
        assert error is None, error
        found.append(message.timestamp())

    now = datetime.now(UTC)
    off = int((now + timedelta(hours=hours)).timestamp() * 1000)
    producer = Producer({"bootstrap.servers": broker})
    producer.produce(topic, key=b"k", value=b"v", timestamp=off, on_delivery=told)
    assert producer.flush(30) == 0
    ((kind, stamp),) = found
    stamped = datetime.fromtimestamp(stamp / 1000, UTC)
    return kind == TIMESTAMP_LOG_APPEND_TIME and abs(stamped - now) < timedelta(minutes=30)
