"""Test the start of a connector when there is a table that it cannot read (real servers)."""

from functools import partial

import httpx
import pytest

from cdc import http_client
from cdc.capture.bootstrap import establish
from cdc.capture.change_captured import change_captured
from cdc.capture.exclude_unreadable import exclude_unreadable, take_back
from cdc.config import Config
from cdc.source.connector import worker_rest
from cdc.source.connector.connector_start import await_running
from cdc.source.connector.settings import configured_tables, passed_over_tables
from cdc.source.server.connection import Connection
from cdc.stack.supervise.connector_watch import Absence, ConnectorWatch
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from cdc.tables import ColumnId, TableId
from cdc.waiting import until
from tests.source.conftest import Maker, judged
from tests.source.topic import Topic, ops

pytestmark = pytest.mark.integration

TWINS = {
    "case": 'ALTER TABLE {} ADD "V" text',
    "signs": 'ALTER TABLE {} ADD "a-b" text, ADD a_b text',
    "key": 'ALTER TABLE {} ADD "ID" int DEFAULT 0, DROP CONSTRAINT key_pkey,'
    ' ADD PRIMARY KEY (id, "ID")',
}
"""By table, the DDL that gives two of its columns one name."""


def test_a_table_with_clashing_names_is_passed_over_until_they_differ(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    tables = _create_tables(config, source)
    establish(pipeline)
    other = Topic(chain, f"{config.name}.{config.name}.other")
    other.until(lambda events: ops(events) == ["r"])
    for name, twins in TWINS.items():
        source.execute(twins.format(f'"{name}"').encode())
    source.execute("INSERT INTO other VALUES (2)")
    other.until(lambda events: len(events) >= 2)

    _restart(pipeline)
    until(lambda: _failed(pipeline), 60, "it went on beside such tables")
    watch = ConnectorWatch(
        chain.connect, config.name, Absence(lambda: True), partial(exclude_unreadable, pipeline)
    )
    report = str(watch.look(0))
    assert all(str(table) in report for table in tables if table.name in TWINS)
    source.execute("INSERT INTO other VALUES (3)")
    other.until(lambda events: len(events) >= 3)
    running = worker_rest.configuration(chain.connect, config.name)
    assert passed_over_tables(running) == {table for table in tables if table.name in TWINS}
    assert configured_tables(running) == tables
    assert exclude_unreadable(pipeline) == ()  # nothing is left to pass over

    establish(pipeline)  # a start decides the same
    assert worker_rest.configuration(chain.connect, config.name) == running

    table = TableId(config.name, "case")
    source.execute('ALTER TABLE "case" RENAME "V" TO other')
    assert not take_back(pipeline, judged(config, source, "other"))
    source.execute(f'ALTER PUBLICATION {config.name} ADD TABLE "case"'.encode())
    assert take_back(pipeline, judged(config, source, table.name))
    source.execute("""INSERT INTO "case" VALUES (9, 'again')""")
    topic = Topic(chain, f"{config.name}.{config.name}.case")
    assert topic.until(lambda events: len(events) >= 2)[-1][1]["after"]["id"] == 9
    assert table not in passed_over_tables(worker_rest.configuration(chain.connect, config.name))

    # A changed configuration captures fit tables again, and publishes them.
    source.execute("ALTER TABLE signs RENAME a_b TO other")
    assert change_captured(pipeline).reconfigured
    source.execute("INSERT INTO signs VALUES (9)")
    topic = Topic(chain, f"{config.name}.{config.name}.signs")
    assert topic.until(lambda events: len(events) >= 2)[-1][1]["after"]["id"] == 9


def test_a_start_succeeds_whatever_the_connector_s_earlier_settings(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """The worker starts with the connector's earlier settings, as with ``up`` after ``down``."""
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    _create_tables(config, source)
    establish(pipeline)
    other = Topic(chain, f"{config.name}.{config.name}.other")
    other.until(lambda events: ops(events) == ["r"])
    source.execute(TWINS["case"].format('"case"').encode())
    _restart(pipeline)
    establish(pipeline)
    source.execute("INSERT INTO other VALUES (2)")
    other.until(lambda events: len(events) >= 2)


def test_a_first_snapshot_passes_over_a_table_with_clashing_names(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """The columns are renamed after the tables were judged, before the connector reads them."""
    pipeline = Pipeline(make_config(chain), chain)
    _assert_first_snapshot_without(pipeline, source, 'ALTER TABLE "case" ADD "V" text')


def test_the_first_snapshot_passes_over_a_table_without_columns(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """The connector fails with a NullPointerException at a table without columns."""
    change = 'ALTER TABLE "case" DROP id, DROP v'
    _assert_first_snapshot_without(Pipeline(make_config(chain), chain), source, change)


def test_a_first_snapshot_leaves_out_a_new_column_that_it_cannot_read(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    config = make_config(chain)
    change = (
        """ALTER TABLE "case" ADD b bit(5)[] DEFAULT '{NULL}', ADD n numeric[] DEFAULT '{NaN}'"""
    )
    columns = [ColumnId(TableId(config.name, "case"), name) for name in "bn"]
    _assert_first_snapshot_without(Pipeline(config, chain), source, change, *columns)


def _assert_first_snapshot_without(
    pipeline: Pipeline,
    source: Connection,
    change: str,
    *left_out: ColumnId,
) -> None:
    _create_tables(pipeline.config, source)
    establish(pipeline)
    other = Topic(pipeline.endpoints, f"{pipeline.name}.{pipeline.name}.other")
    other.until(lambda found: ops(found) == ["r"])
    worker_rest.stop(pipeline.endpoints.connect, pipeline.name)
    worker_rest.forget_offsets(pipeline.endpoints.connect, pipeline.name)
    source.execute(change.encode())
    worker_rest.resume(pipeline.endpoints.connect, pipeline.name)
    until(lambda: _failed(pipeline), 60, "it went on beside such a table")
    assert exclude_unreadable(pipeline) == (left_out or (TableId(pipeline.name, "case"),))
    until(lambda: not _failed(pipeline), 60, "the failure of before is still told")
    await_running(source, pipeline, streams=False)
    other.until(lambda found: len(found) >= 2 and set(ops(found)) == {"r"})


def test_nothing_is_passed_over_while_its_changes_are_published(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """Passing over published changes would lose them silently, so nothing continues."""
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    _create_tables(config, source)
    establish(pipeline)
    source.execute("SET event_triggers = off")
    source.execute('ALTER TABLE "case" ADD "V" text')
    assert exclude_unreadable(pipeline) == ()
    assert passed_over_tables(worker_rest.configuration(chain.connect, config.name)) == frozenset()


def _create_tables(config: Config, source: Connection) -> frozenset[TableId]:
    for name in (*TWINS, "other"):
        source.execute(f'CREATE TABLE "{name}" (id int PRIMARY KEY, v text)'.encode())
        source.execute(f'INSERT INTO "{name}" VALUES (1)'.encode())
    return frozenset(TableId(config.name, name) for name in (*TWINS, "other"))


def _restart(pipeline: Pipeline) -> None:
    url = f"{pipeline.endpoints.connect}/connectors/{pipeline.name}/restart"
    found = http_client.request("POST", url, params={"includeTasks": "true"}, timeout=30)
    assert found.status_code < httpx.codes.BAD_REQUEST


def _failed(pipeline: Pipeline) -> bool:
    found = worker_rest.status(pipeline.endpoints.connect, pipeline.name)
    return found is not None and found.failed
