"""A task that ended while its worker could not write that down, on real servers."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined] # not all in its __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from cdc.source import connector
from cdc.source.bootstrap import establish
from cdc.source.continuity import until
from cdc.source.postgres import Connection
from cdc.source.sessions import is_at_source
from cdc.source.slot import slot_state
from cdc.stack.connector_watch import Absence, ConnectorWatch
from cdc.stack.endpoints import Endpoints
from cdc.stack.state import StateDir
from tests.servers.fixtures import on_containers
from tests.source.conftest import Maker, open_schema
from tests.source.topic import Topic, ops

pytestmark = [pytest.mark.integration, pytest.mark.deep]  # a minute of it is the broker's

NOTHING_FITS: Final = "100"  # bytes
UNWRITTEN: Final = "Failed to write status update"
ENDED_SECONDS: Final = 180  # it waits until the broker ends its transaction, after a minute


@pytest.fixture
def source(chain: Endpoints, schema: str) -> Iterator[Connection]:
    with open_schema(chain.source_url, schema) as connection:
        yield connection
        connector.delete(chain.connect, schema)


def test_is_started_again(
    request: pytest.FixtureRequest,
    chain: Endpoints,
    chain_state: Path,
    source: Connection,
    make_config: Maker,
) -> None:
    if on_containers(request):
        pytest.skip("the worker's own log tells when it gave up to write")
    config = make_config(chain)
    source.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    establish(config, chain)
    topic = Topic(chain, f"{config.name}.{config.name}.t")
    absence = Absence(partial(is_at_source, chain.source_url, config.name))
    watch = ConnectorWatch(chain.connect, config.name, absence)
    seconds = count(0.0, 10.0)
    assert [watch.look(next(seconds)) for _ in range(60)] == [None] * 60

    with refusing(chain, topic.name, status_topic(chain)):
        source.execute("INSERT INTO t VALUES (1, repeat('x', 1000))")
        log = StateDir(chain_state).log("connect")
        until(lambda: UNWRITTEN in log.read_text(), ENDED_SECONDS, "the task did not end")
        assert not is_read(source, config.name)
        found = connector.status(chain.connect, config.name)
        assert found is not None
        assert found.running  # as the worker believes

    said = [watch.look(next(seconds)) for _ in range(60)]
    assert any("no session at the source" in (text or "") for text in said)
    topic.until(lambda events: ops(events) == ["c"])


def is_read(source: Connection, name: str) -> bool:
    state = slot_state(source, name)
    return state is not None and state.active_pid is not None


def status_topic(chain: Endpoints) -> str:
    topics = AdminClient({"bootstrap.servers": chain.kafka}).list_topics(timeout=10).topics
    (found,) = (name for name in topics if name.endswith("connect-status"))
    return str(found)


@contextmanager
def refusing(chain: Endpoints, *topics: str) -> Iterator[None]:
    """No batch fits into them."""
    _alter(chain, topics, {"max.message.bytes": NOTHING_FITS})
    try:
        yield
    finally:
        _alter(chain, topics, {"max.message.bytes": None})


def _alter(chain: Endpoints, topics: tuple[str, ...], settings: Mapping[str, str | None]) -> None:
    client = AdminClient({"bootstrap.servers": chain.kafka})
    resources = [
        ConfigResource(ResourceType.TOPIC, topic, incremental_configs=_entries(settings))
        for topic in topics
    ]
    answers: dict[Any, Any] = client.incremental_alter_configs(resources)
    for answer in answers.values():
        answer.result()


def _entries(settings: Mapping[str, str | None]) -> list[ConfigEntry]:
    kinds = AlterConfigOpType.SET, AlterConfigOpType.DELETE
    return [
        ConfigEntry(name, value, incremental_operation=kinds[value is None])
        for name, value in settings.items()
    ]
