"""Test values that do not fit the new type of their column (real servers)."""

import time
from functools import partial

import pytest

from cdc.capture.bootstrap import establish
from cdc.capture.exclude_unreadable import exclude_unreadable, take_back
from cdc.source.connector import worker_rest
from cdc.source.connector.settings import columns_passed_over
from cdc.source.server.connection import Connection
from cdc.source.server.slot import slot_state
from cdc.stack.supervise.connector_watch import Absence, ConnectorWatch
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from cdc.tables import ColumnId, TableId
from cdc.waiting import until
from tests.source.conftest import Maker, judged
from tests.source.topic import Topic, ops
from tests.stopped import stopped

pytestmark = pytest.mark.integration


def test_a_column_converted_by_an_expression_is_left_out(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    _goes_on_without(
        Pipeline(make_config(chain), chain), source, "ALTER v TYPE int USING length(v)"
    )


def test_a_column_that_was_replaced_by_another_is_left_out(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    _goes_on_without(Pipeline(make_config(chain), chain), source, "DROP v, ADD v int")


def _goes_on_without(pipeline: Pipeline, source: Connection, change: str) -> None:
    source.execute("CREATE TABLE t (id int PRIMARY KEY, v text, w text)")
    source.execute("CREATE TABLE other (id int PRIMARY KEY)")
    source.execute("INSERT INTO t VALUES (1, 'x')")
    establish(pipeline)
    topic = Topic(pipeline.endpoints, f"{pipeline.name}.{pipeline.name}.t")
    topic.until(lambda found: ops(found) == ["r"])
    # A connector that does not stream yet may take the new type for that of all rows.
    source.execute("INSERT INTO t VALUES (0, 'y')")
    topic.until(lambda found: ops(found) == ["r", "c"])
    source.execute("ALTER TABLE t ALTER w TYPE varchar(100)")  # which does not change the values
    # Postgres sends a commit a moment before other sessions see it. A connector that asks the
    # catalogue in between finds the old type, and does not fail.
    with stopped(_sender(source, pipeline.name)), source.transaction():
        source.execute("INSERT INTO t VALUES (2, 'abc')")
        source.execute(f"ALTER TABLE t {change}".encode())
    source.execute("INSERT INTO other VALUES (1)")
    until(lambda: _failed(pipeline.endpoints, pipeline.name), 60, "it went on by itself")

    watch = ConnectorWatch(
        pipeline.endpoints.connect,
        pipeline.name,
        Absence(lambda: True),
        partial(exclude_unreadable, pipeline),
    )
    went_on = f"it continues without {pipeline.name}.t.v"  # a busy worker may be asked again
    until(lambda: went_on in str(watch.look(time.monotonic())), 60, "it did not go on")

    other = Topic(pipeline.endpoints, f"{pipeline.name}.{pipeline.name}.other")
    other.until(lambda found: ops(found) == ["c"])
    table = TableId(pipeline.name, "t")
    told = columns_passed_over(worker_rest.configuration(pipeline.endpoints.connect, pipeline.name))
    assert ColumnId(table, "v") in told
    _, _, (_, event) = topic.events()
    assert "v" not in event["after"]
    assert event["after"]["id"] == 2

    assert take_back(pipeline, judged(pipeline.config, source, table.name))
    assert not take_back(pipeline, judged(pipeline.config, source, table.name))
    source.execute("INSERT INTO t VALUES (3, NULL)")
    events = topic.until(lambda events: len(events) >= 4)
    assert events[-1][1]["after"] == {"id": 3, "v": None, "w": None}


def test_no_column_is_left_out_if_no_type_changed(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    source.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    establish(pipeline)
    source.execute("ALTER TABLE t ADD w text")
    source.execute("INSERT INTO t VALUES (1, 'x')")
    topic = Topic(chain, f"{config.name}.{config.name}.t")
    topic.until(lambda found: ops(found) == ["c"])
    assert exclude_unreadable(pipeline, at_an_event=True) == ()


def _sender(source: Connection, name: str) -> int:
    """Return the process of the server that sends what the slot reads."""
    state = slot_state(source, name)
    assert state is not None
    assert state.active_pid is not None
    return state.active_pid


def _failed(chain: Endpoints, name: str) -> bool:
    status = worker_rest.status(chain.connect, name)
    return status is not None and status.failed
