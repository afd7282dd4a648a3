"""A failed task is detected even if its worker could not record the failure (real servers)."""

from functools import partial
from itertools import count
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined] # not all in its __all__
    AdminClient,
    ResourceType,
)

from cdc.capture.bootstrap import establish
from cdc.source.connector import worker_rest
from cdc.source.connector.sessions import is_at_source
from cdc.source.server.connection import Connection
from cdc.source.server.slot import is_read
from cdc.stack.supervise.connector_watch import Absence, ConnectorWatch
from cdc.state.directory import StateDir
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from cdc.waiting import until
from tests.servers.fixtures import on_containers
from tests.source.altered import altered
from tests.source.conftest import Maker
from tests.source.topic import Topic, ops

pytestmark = [pytest.mark.integration, pytest.mark.deep]  # the broker alone takes a minute

NOTHING_FITS: Final = "100"  # bytes
UNWRITTEN: Final = b"Failed to write status update"
ENDED_SECONDS: Final = 180  # a task that failed keeps its session for a minute


def test_a_task_that_ended_unnoticed_is_restarted(
    request: pytest.FixtureRequest,
    chain: Endpoints,
    chain_state: Path,
    source: Connection,
    make_config: Maker,
) -> None:
    if on_containers(request):
        pytest.skip("only the worker's own log shows that it gave up writing")
    config = make_config(chain)
    source.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    establish(Pipeline(config, chain))
    topic = Topic(chain, f"{config.name}.{config.name}.t")
    absence = Absence(partial(is_at_source, chain.source_url, config.name))
    watch = ConnectorWatch(chain.connect, config.name, absence)
    seconds = count(0.0, 10.0)
    assert [watch.look(next(seconds)) for _ in range(60)] == [None] * 60

    refusing = (topic.name, status_topic(chain))
    log = StateDir(chain_state).log("connect")
    before = log.stat().st_size
    with altered(
        chain.kafka.bootstrap, ResourceType.TOPIC, refusing, "max.message.bytes", NOTHING_FITS
    ):
        source.execute("INSERT INTO t VALUES (1, repeat('x', 1000))")
        until(lambda: UNWRITTEN in log.read_bytes()[before:], ENDED_SECONDS, "nothing was refused")
        until(lambda: not is_read(source, config.name), ENDED_SECONDS, "the session did not end")
        status = worker_rest.status(chain.connect, config.name)
        assert status is not None
        assert status.running  # in the worker's view

    reports = [watch.look(next(seconds)) for _ in range(60)]
    assert any("no session at the source" in (text or "") for text in reports)
    topic.until(lambda events: ops(events) == ["c"])


def status_topic(chain: Endpoints) -> str:
    topics = (
        AdminClient({"bootstrap.servers": chain.kafka.bootstrap}).list_topics(timeout=10).topics
    )
    (found,) = (name for name in topics if name.endswith("connect-status"))
    return str(found)
