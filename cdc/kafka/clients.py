"""Makes clients of Kafka that write no log lines of their own."""

import logging
from typing import Any, Final

from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient

_SILENT: Final = logging.getLogger("cdc.kafka.client")


def admin(bootstrap: str) -> AdminClient:
    """Return an admin client."""
    return AdminClient({"bootstrap.servers": bootstrap}, logger=_SILENT)


def reading_consumer(bootstrap: str, group: str, **more: Any) -> Consumer:  # noqa: ANN401 - librdkafka's values
    """Return a consumer of committed records, which is assigned topics and stores no position.

    ``group`` is only a name: no group is ever joined. ``more`` are settings of librdkafka with
    underscores for dots.
    """
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
        "log_level": 0,  # what is wrong is in the errors of polls
    }
    return Consumer(
        settings | {name.replace("_", "."): value for name, value in more.items()}, logger=_SILENT
    )
