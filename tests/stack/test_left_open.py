"""A transaction that a killed worker left open does not keep the next one from starting."""

from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer

from tests.servers.fixtures import on_containers, started

pytestmark = pytest.mark.integration

LONG_MS = 900_000
"""The longest that a broker allows: it does not expire during the test."""


def test_a_transaction_that_a_killed_worker_left_open_is_ended_by_the_next_start(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if on_containers(request):
        pytest.skip("nothing of ours runs before the worker of a container")
    with started(request, tmp_path, ("kafka", "connect")) as servers:
        settings = {
            "bootstrap.servers": servers["kafka"].address,
            "transactional.id": "wal2lake-connect-wal2lake-0",
            "transaction.timeout.ms": LONG_MS,
        }
        killed = Producer(settings)
        killed.init_transactions(30)
        killed.begin_transaction()
        killed.produce("wal2lake-connect-offsets", b"[]", b"{}")
        killed.flush(30)
        servers["connect"].kill()

        servers["connect"].start()

        with pytest.raises(KafkaException):
            killed.commit_transaction(30)
