"""The registry's topics are created once the broker has a controller, not only if it has one."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from confluent_kafka import KafkaException

from cdc.kafka.broker import Broker
from cdc.kafka.topics import topic_ids
from cdc.stack.servers import registry
from tests.servers.fixtures import Makers
from tests.servers.process import ProcessServer
from tests.stopped import stopped
from tests.waiting import until

pytestmark = pytest.mark.integration


def test_a_broker_without_a_controller_is_waited_for(
    servers: Makers, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka = servers["kafka"]()
    if not isinstance(kafka, ProcessServer):
        pytest.skip("needs a process of the broker to suspend")
    broker = Broker(kafka.start())
    failures: list[KafkaException] = []
    create = registry._create

    def noted(*arguments: Any) -> None:  # noqa: ANN401 - passed on as they are
        try:
            create(*arguments)
        except KafkaException as error:
            failures.append(error)
            raise

    monkeypatch.setattr(registry, "_create", noted)
    monkeypatch.setattr(registry, "_REQUEST_SECONDS", 1)
    assert kafka.process is not None
    with ThreadPoolExecutor() as pool:
        with stopped(kafka.process.pid):
            creating = pool.submit(registry.create_topics, broker, {"journal": {}}, 1)
            until(lambda: failures)
        creating.result(timeout=90)

    assert list(topic_ids(broker, ["journal"])) == ["journal"]
