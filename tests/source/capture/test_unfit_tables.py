"""A table that the connector cannot capture, or not any more, stops no other table."""

from contextlib import suppress
from typing import Any

import pytest

from cdc.capture.bootstrap import establish
from cdc.errors import CdcError
from cdc.source.catalog import catalog
from cdc.source.connector import worker_rest
from cdc.source.server.connection import Connection
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from cdc.waiting import until
from tests.source.conftest import Maker
from tests.source.topic import Event, Topic, ops

pytestmark = pytest.mark.integration


def refusal(pipeline: Pipeline) -> CdcError:
    with pytest.raises(CdcError) as caught:
        establish(pipeline)
    return caught.value


def test_a_table_whose_name_differs_by_case_is_none_of_ours(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """The connector's lists ignore case, and other matching tables have no topic."""
    config = make_config(chain)
    upper = config.name.upper()
    source.execute(f'DROP SCHEMA IF EXISTS "{upper}" CASCADE; CREATE SCHEMA "{upper}"'.encode())
    source.execute("CREATE TABLE t (id int PRIMARY KEY, v int)")
    source.execute(f'CREATE TABLE "{upper}".t (id int PRIMARY KEY, v int)'.encode())
    source.execute(f'CREATE TABLE "{upper}"."T" (id int PRIMARY KEY, v money)'.encode())
    source.execute("INSERT INTO t VALUES (1, 1)")
    source.execute(f'INSERT INTO "{upper}".t VALUES (1, 100)'.encode())

    establish(Pipeline(config, chain))
    topic = Topic(chain, f"{config.name}.{config.name}.t")
    topic.until(lambda found: ops(found) == ["r"])
    source.execute("UPDATE t SET v = 2")
    source.execute(f'UPDATE "{upper}".t SET v = 200'.encode())

    events = topic.until(lambda found: len(found) >= 2)
    assert [value["after"]["v"] for _, value in events] == [1, 2]
    source.execute(f'DROP SCHEMA "{upper}" CASCADE'.encode())


def test_columns_that_the_connector_takes_for_one_stop_no_other_table(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """It would fail for good, so the table leaves the publication before any row of it."""
    config = make_config(chain)
    for name in ("case", "signs"):
        source.execute(f'CREATE TABLE "{name}" (id int PRIMARY KEY, v text)'.encode())
    source.execute("CREATE TABLE other (id int PRIMARY KEY)")
    establish(Pipeline(config, chain))
    other = Topic(chain, f"{config.name}.{config.name}.other")
    source.execute("INSERT INTO other VALUES (0)")
    other.until(lambda found: len(found) >= 1)  # its start is over: it reads no columns any more
    with source.transaction():
        source.execute("INSERT INTO other VALUES (1)")
        source.execute("""INSERT INTO "case" VALUES (1, 'before')""")
        source.execute('ALTER TABLE "case" ADD "V" text')
        source.execute("""INSERT INTO "case" VALUES (2, 'low', 'UP')""")
        source.execute('ALTER TABLE signs ADD "a-b" text, ADD a_b text')
        source.execute("INSERT INTO signs VALUES (1, 'x', 'y', 'z')")
        source.execute("INSERT INTO other VALUES (2)")
    source.execute("""UPDATE "case" SET v = 'later'""")

    other.until(lambda found: len(found) >= 3)
    source.execute("INSERT INTO other VALUES (3)")
    events = other.until(lambda found: len(found) >= 4)
    assert [value["after"]["id"] for _, value in events] == [0, 1, 2, 3]
    assert ops(Topic(chain, f"{config.name}.{config.name}.case").events()) == ["c"]
    found = worker_rest.status(chain.connect, config.name)
    assert found is not None
    assert not found.failed


def test_a_new_column_at_which_the_connector_ends_stops_no_other_table(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """It can exclude columns that existed at its start, but no later one."""
    config = make_config(chain)
    ending = {"path": "path[]", "numeric": "numeric[]", "tsquery": "tsquery[]", "bit": "bit(5)[]"}
    for name in ending:
        source.execute(f"CREATE TABLE of_{name} (id int PRIMARY KEY)".encode())
    source.execute("CREATE TABLE other (id int PRIMARY KEY)")
    establish(Pipeline(config, chain))
    other = Topic(chain, f"{config.name}.{config.name}.other")
    source.execute("INSERT INTO other VALUES (0)")
    other.until(lambda found: len(found) >= 1)  # its start is over: it reads no columns any more
    with source.transaction():
        for name, kind in ending.items():
            source.execute(f"ALTER TABLE of_{name} ADD v {kind}".encode())
            value = "{NaN}" if name == "numeric" else "{NULL}"
            source.execute(f"INSERT INTO of_{name} VALUES (1, %s)".encode(), (value,))
        source.execute("INSERT INTO of_path VALUES (2, %s)", ('{"((1,1),(2,2))"}',))
        source.execute("INSERT INTO other VALUES (1)")

    assert [v["after"]["id"] for _, v in other.until(lambda found: len(found) >= 2)] == [0, 1]
    found = worker_rest.status(chain.connect, config.name)
    assert found is not None
    assert not found.failed
    assert Topic(chain, f"{config.name}.{config.name}.of_path").events() == []


def test_a_table_without_a_column_is_refused_for_a_reason(
    chain: Endpoints, source: Connection, make_config: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It makes the first snapshot fail. Once the connector accepts it, drop the rule."""
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    source.execute("CREATE TABLE nothing ()")
    source.execute("ALTER TABLE nothing REPLICA IDENTITY FULL")
    source.execute("CREATE TABLE other (id int PRIMARY KEY)")
    assert "has no columns" in str(refusal(pipeline))
    monkeypatch.setattr(catalog, "without_columns", lambda *_: [])

    with suppress(CdcError):  # it may be seen running before it reads the table
        establish(pipeline)

    until(lambda: "NullPointerException" in _failure(pipeline), 60, "it accepts the table")


def _failure(pipeline: Pipeline) -> str:
    found = worker_rest.status(pipeline.endpoints.connect, pipeline.name)
    return "" if found is None else found.failure


def test_a_table_that_loses_its_columns_or_its_key_stops_no_other_table(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    config = make_config(chain)
    source.execute("CREATE TABLE bag (v text); ALTER TABLE bag REPLICA IDENTITY FULL")
    source.execute("CREATE TABLE keyed (id int PRIMARY KEY, v text)")
    source.execute(
        "CREATE TABLE counted (id int PRIMARY KEY, n int GENERATED ALWAYS AS (1) STORED)"
    )
    source.execute("CREATE TABLE other (id int PRIMARY KEY)")
    establish(Pipeline(config, chain))
    other = Topic(chain, f"{config.name}.{config.name}.other")
    source.execute("INSERT INTO other VALUES (0)")
    other.until(lambda found: len(found) >= 1)
    source.execute("UPDATE other SET id = 1")
    other.until(lambda found: ops(found)[-1] == "c")  # the first snapshot is over
    source.execute("ALTER TABLE bag DROP v; INSERT INTO bag DEFAULT VALUES; TRUNCATE bag")
    source.execute("ALTER TABLE keyed DROP id; INSERT INTO keyed VALUES ('x')")
    source.execute("ALTER TABLE counted DROP id; INSERT INTO counted DEFAULT VALUES")
    source.execute("INSERT INTO other VALUES (2)")
    other.until(lambda found: _last_id(found) == 2)

    worker_rest.restart(
        chain.connect, config.name
    )  # a restart reads the columns of all tables again
    source.execute("INSERT INTO other VALUES (3)")

    other.until(lambda found: _last_id(found) == 3)


def _last_id(events: list[Event]) -> Any:  # noqa: ANN401 - of any row
    """Return the id of the newest row; None if that was deleted."""
    value = events[-1][1]
    return value and value["after"] and value["after"]["id"]


def test_a_start_goes_on_without_a_table_that_is_not_fit_any_more(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """One lost its key, one was dropped, one was created again; each is reported."""
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    name = config.name
    for table in ("t", "keyless", "gone", "again"):
        source.execute(f"CREATE TABLE {table} (id int PRIMARY KEY)".encode())
    begun = {table.table.name: table for table in establish(pipeline)}
    source.execute("INSERT INTO t VALUES (1)")
    topic = Topic(chain, f"{name}.{name}.t")
    topic.until(lambda events: ops(events) == ["c"])
    source.execute("ALTER TABLE keyless DROP CONSTRAINT keyless_pkey")
    source.execute("DROP TABLE gone, again")
    source.execute("CREATE TABLE again (id int PRIMARY KEY)")
    source.execute("CREATE TABLE late (id int)")

    found = {table.table.name: table for table in establish(pipeline)}
    source.execute("INSERT INTO t VALUES (2)")

    assert topic.until(lambda events: ops(events) == ["c", "c"])
    assert found.keys() == {"t", "keyless", "gone", "again"}
    assert found["t"] == begun["t"]
    assert found["again"].oid not in {0, begun["again"].oid}
    reasons = {table: found[table].unfit for table in ("keyless", "gone")}
    assert reasons["keyless"] is not None
    assert "no usable primary key" in reasons["keyless"].message
    assert reasons["gone"] is not None
    assert "was dropped" in reasons["gone"].message
    captured = worker_rest.configuration(chain.connect, name)
    assert captured is not None
    assert "gone" in captured["table.include.list"]  # as configured before it was dropped
