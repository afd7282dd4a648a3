"""Appended records have the broker's time, whatever the producer's clock says."""

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Message, Producer
from confluent_kafka.admin import ResourceType  # type: ignore[attr-defined] # not in its __all__

from cdc.capture.topic_specs import topic_specs
from cdc.kafka.broker import Broker
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
def test_records_in_topics_of_worker_and_registry_get_the_broker_s_time(
    broker: str, hours: int
) -> None:
    """Worker and registry create their topics with the broker's defaults."""
    ensure_topics(Broker(broker), [TopicSpec("default")])
    assert gets_broker_time(broker, "default", hours)


@pytest.mark.parametrize("hours", HOURS)
def test_records_of_tables_get_the_broker_s_time_whatever_the_broker_s_default(
    broker: str, make_config: Maker, hours: int
) -> None:
    specs = topic_specs(make_config(), TABLES)
    with altered(broker, ResourceType.BROKER, ("1",), STAMPED, "CreateTime"):  # Kafka's default
        ensure_topics(Broker(broker), specs)
        assert all(gets_broker_time(broker, spec.name, hours) for spec in specs)


def gets_broker_time(broker: str, topic: str, hours: int) -> bool:
    """Return whether a record with a wrong time is accepted and gets the broker's time."""
    stamps: list[tuple[int, int]] = []

    def on_delivery(error: object, message: Message) -> None:
        assert error is None, error
        stamps.append(message.timestamp())

    now = datetime.now(UTC)
    off = int((now + timedelta(hours=hours)).timestamp() * 1000)
    producer = Producer({"bootstrap.servers": broker})
    producer.produce(topic, key=b"k", value=b"v", timestamp=off, on_delivery=on_delivery)
    assert producer.flush(30) == 0
    ((kind, stamp),) = stamps
    stamped = datetime.fromtimestamp(stamp / 1000, UTC)
    return kind == TIMESTAMP_LOG_APPEND_TIME and abs(stamped - now) < timedelta(minutes=30)
