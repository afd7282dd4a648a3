"""A row cannot make the connector read a table, or run SQL: it takes no signals."""

import json

import pytest

from cdc.capture.bootstrap import establish
from cdc.source.server.connection import Connection
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from tests.source.conftest import Maker
from tests.source.topic import Event, Topic

pytestmark = pytest.mark.integration

SIGNALS = "wal2lake.signal"  # where earlier versions had such a table

RUN = """
CREATE FUNCTION run(id int) RETURNS bool LANGUAGE sql VOLATILE
AS 'INSERT INTO {}.ran VALUES (id) RETURNING true'
"""


def test_a_row_is_no_command(chain: Endpoints, source: Connection, make_config: Maker) -> None:
    """Even one of somebody who may write to every table, and to one that was published once."""
    pipeline = Pipeline(make_config(chain), chain)
    name = pipeline.name
    source.execute("CREATE TABLE t (id int PRIMARY KEY)")
    source.execute("CREATE TABLE ran (id int PRIMARY KEY)")
    source.execute(RUN.format(name).encode())
    source.execute("INSERT INTO t SELECT generate_series(1, 20)")
    establish(pipeline)
    topic = Topic(chain, f"{name}.{name}.t")
    topic.until(lambda found: len(found) == 20)

    columns = "(id text PRIMARY KEY, type text, data text)"
    source.execute(f"CREATE TABLE IF NOT EXISTS {SIGNALS} {columns}".encode())
    source.execute(f"ALTER PUBLICATION {name} ADD TABLE {SIGNALS}".encode())
    condition = (
        f"id IN (WITH x AS (INSERT INTO {name}.ran VALUES (1) RETURNING id) SELECT * FROM x)"
    )
    for kind in ("incremental", "blocking"):
        for filters in ([], [{"data-collection": f"{name}.t", "filter": condition}]):
            wanted = {"data-collections": [f"{name}.t"], "type": kind}
            data = json.dumps({**wanted, "additional-conditions": filters})
            row = (f"{name} {kind} {len(filters)}", "execute-snapshot", data)
            source.execute(f"INSERT INTO {SIGNALS} VALUES (%s, %s, %s)".encode(), row)
    for number in range(21, 26):
        source.execute(f"INSERT INTO t VALUES ({number})".encode())
        events = topic.until(lambda found, n=number: len(found) >= n)  # type: ignore[misc]

    assert _operations(events) == ["r"] * 20 + ["c"] * 5
    assert source.execute("SELECT count(*) FROM ran").fetchone() == (0,)


def _operations(events: list[Event]) -> list[str]:
    return [str(value["op"]) for _, value in events if value]
