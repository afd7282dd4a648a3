"""Makes clients of Kafka that write no log lines of their own."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from cdc.kafka.broker import Broker

_SILENT: Final = logging.getLogger("cdc.kafka.client")


def admin(broker: Broker) -> AdminClient:
    """Return an admin client."""
    return AdminClient(broker.client_settings(), logger=_SILENT)


def producer(broker: Broker, settings: Mapping[str, Any]) -> Producer:
    """Return a producer with these settings of librdkafka."""
    return Producer({**broker.client_settings(), **settings}, logger=_SILENT)


def reading_consumer(broker: Broker, group: str, **more: Any) -> Consumer:  # noqa: ANN401 - librdkafka's values
    """Return a consumer of committed records, which is assigned topics and stores no position.

    ``group`` is only a name: no group is ever joined. ``more`` are settings of librdkafka with
    underscores for dots.
    """
    settings = {
        **broker.client_settings(),
        "group.id": group,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
        "log_level": 0,  # what is wrong is in the errors of polls
    }
    return Consumer(
        settings | {name.replace("_", "."): value for name, value in more.items()}, logger=_SILENT
    )
