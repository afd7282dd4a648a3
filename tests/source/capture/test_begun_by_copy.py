"""A pipeline whose first snapshot the job reads: the connector begins with the stream."""

from collections.abc import Iterator

import pytest

from cdc.capture import first_slot
from cdc.capture.bootstrap import begins_by_copy, establish
from cdc.config import Config
from cdc.source.connector import worker_rest
from cdc.source.connector.settings import FIRST, SNAPSHOT_MODE, STREAM_ONLY
from cdc.source.server.connection import Connection
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from cdc.tables import STRUCTURE
from tests.source.conftest import Maker, open_schema
from tests.source.positions import mark_unfinished
from tests.source.topic import Topic, ops

pytestmark = pytest.mark.integration


@pytest.fixture
def source(chain: Endpoints, schema: str) -> Iterator[Connection]:
    with open_schema(chain.source_url, schema) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        connection.execute("INSERT INTO t VALUES (1, 'before')")
        yield connection
        worker_rest.delete(chain.connect, schema)


def settings(pipeline: Pipeline) -> dict[str, str]:
    found = worker_rest.configuration(pipeline.endpoints.connect, pipeline.name) or {}
    return {name: found[name] for name in (SNAPSHOT_MODE, FIRST) if name in found}


def choosing(config: Config, snapshot: str) -> Config:
    return config.model_copy(
        update={"source": config.source.model_copy(update={"snapshot": snapshot})}
    )


def test_the_topics_begin_with_the_stream_and_have_the_structures(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    pipeline = Pipeline(make_config(chain, snapshot="copy"), chain)
    assert begins_by_copy(pipeline)

    establish(pipeline)

    source.execute("INSERT INTO t VALUES (2, 'after')")
    topic = Topic(chain, f"{pipeline.name}.{pipeline.name}.t")
    (event,) = topic.until(lambda events: len(events) == 1)
    assert event[1]["after"] == {"id": 2, "v": "after"}
    notes = Topic(chain, STRUCTURE.topic(pipeline.name))
    assert ops(notes.until(lambda events: len(events) >= 1)) == ["c"]
    assert settings(pipeline) == {SNAPSHOT_MODE: STREAM_ONLY, FIRST: "copy"}
    assert first_slot.first_lsn(pipeline.config) is not None


@pytest.mark.parametrize(("first", "later"), [("copy", "connector"), ("connector", "copy")])
def test_a_pipeline_goes_on_as_it_began(
    chain: Endpoints, source: Connection, make_config: Maker, first: str, later: str
) -> None:
    config = make_config(chain, snapshot=first)
    establish(Pipeline(config, chain))
    source.execute("INSERT INTO t VALUES (2, 'after')")
    Topic(chain, f"{config.name}.{config.name}.t").until(lambda events: len(events) >= 1)
    before = settings(Pipeline(config, chain))

    pipeline = Pipeline(choosing(config, later), chain)
    establish(pipeline)

    assert settings(pipeline) == before
    assert begins_by_copy(pipeline) == (first == "copy")


@pytest.mark.usefixtures("source")
def test_a_connector_that_was_deleted_in_the_middle_of_its_snapshot_takes_it_again(
    chain: Endpoints, make_config: Maker
) -> None:
    config = make_config(chain, snapshot="connector")
    establish(Pipeline(config, chain))
    topic = Topic(chain, f"{config.name}.{config.name}.t")
    topic.until(lambda events: ops(events) == ["r"])
    worker_rest.stop(chain.connect, config.name)
    mark_unfinished(Pipeline(config, chain))
    worker_rest.delete(chain.connect, config.name)

    pipeline = Pipeline(choosing(config, "copy"), chain)
    establish(pipeline)

    assert settings(pipeline) == {SNAPSHOT_MODE: "initial"}
    assert not begins_by_copy(pipeline)
    topic.until(lambda events: ops(events) == ["r", "r"])
