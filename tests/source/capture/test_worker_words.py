"""No value of a row gets into a file of the worker, however it fails on one.

The failure of a task, with its message, is in Connect's status topic and in no other file.
"""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from threading import Thread

import pytest

from cdc import http_client
from cdc.capture.bootstrap import establish
from cdc.source.connector import worker_rest
from cdc.source.server.connection import Connection
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from tests.servers.fixtures import on_containers
from tests.source.conftest import Maker, capturing
from tests.source.topic import Topic
from tests.waiting import until

pytestmark = pytest.mark.integration

CANARY = "canary-7f3a-of-a-row"
ROWS = ("data/kafka", "data/postgres", "logs/postgres")
"""Paths that may hold values: topics, tables, and the log of the embedded source."""
TRANSFORM = {
    "transforms": "key,flat,cast",
    "transforms.flat.type": "io.debezium.transforms.ExtractNewRecordState",
    "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value",
    "transforms.cast.spec": "v:int32",
}
CONVERTER = {
    "transforms": "key,flat,one",
    "transforms.flat.type": "io.debezium.transforms.ExtractNewRecordState",
    "transforms.one.type": "org.apache.kafka.connect.transforms.ExtractField$Value",
    "transforms.one.field": "v",
    "value.converter": "org.apache.kafka.connect.converters.IntegerConverter",
}


@pytest.fixture
def source(request: pytest.FixtureRequest, chain: Endpoints, schema: str) -> Iterator[Connection]:
    if on_containers(request):
        pytest.skip("a container's log is its engine's")
    with capturing(chain, schema) as connection:
        yield connection


@pytest.fixture
def pipeline(chain: Endpoints, source: Connection, make_config: Maker) -> Pipeline:
    """Return the pipeline of a running connector that has sent a row."""
    pipeline = Pipeline(make_config(chain), chain)
    source.execute("CREATE TABLE t (v text PRIMARY KEY)")
    source.execute("INSERT INTO t VALUES ('harmless')")
    establish(pipeline)
    Topic(chain, f"{pipeline.name}.{pipeline.name}.t").until(lambda found: len(found) >= 1)
    return pipeline


def fails_on(pipeline: Pipeline, source: Connection, given: dict[str, str]) -> str:
    """Make the connector fail on a value; return its status from the worker's REST interface."""
    now = worker_rest.configuration(pipeline.endpoints.connect, pipeline.name) or {}
    worker_rest.configure(pipeline.endpoints.connect, pipeline.name, now | given)
    numbers = count()

    def failed() -> bool:
        # More than one, because the first may reach the task with its old settings.
        source.execute(f"INSERT INTO t VALUES ('{CANARY}{next(numbers)}')".encode())
        found = worker_rest.status(pipeline.endpoints.connect, pipeline.name)
        return found is not None and found.failed

    until(failed)
    url = f"{pipeline.endpoints.connect}/connectors/{pipeline.name}/status"
    answer = http_client.get(url, timeout=60)
    return str(answer.json())


def assert_only_kafka_has_it(state: Path) -> None:
    """Assert that the canary is in Kafka's files and in no other."""
    files = {path.relative_to(state).as_posix(): path for path in state.rglob("*")}
    kafka = (path for name, path in files.items() if name.startswith("data/kafka"))
    assert any(map(_holds, kafka)), "the canary must be in Kafka's files"
    others = (name for name in files if not name.startswith(ROWS))
    assert sorted(name for name in others if _holds(files[name])) == []


def _holds(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        content = path.read_bytes()
        # Keys of a position are written as Java serializes them, in hexadecimal digits.
        return CANARY.encode() in content or CANARY.encode().hex().encode() in content
    except FileNotFoundError:
        return False


def test_a_transform_that_fails_on_a_value(
    chain_state: Path, pipeline: Pipeline, source: Connection
) -> None:
    assert CANARY in fails_on(pipeline, source, TRANSFORM)
    assert_only_kafka_has_it(chain_state)


def test_a_converter_that_fails_on_a_value(
    chain_state: Path, pipeline: Pipeline, source: Connection
) -> None:
    assert "Exception" in fails_on(pipeline, source, CONVERTER)
    assert_only_kafka_has_it(chain_state)


class Refusing(BaseHTTPRequestHandler):
    """A registry that refuses every schema, and quotes the request."""

    def _refuse(self) -> None:
        request = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        answer = {"error_code": 409, "message": f"no {request}", "name": "Refused"}
        body = json.dumps(answer).encode()
        self.send_response(409)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = _refuse  # noqa: N815 - http.server's names

    def log_message(self, *_: object) -> None:
        pass


def test_a_registry_that_refuses_a_schema(
    chain_state: Path, pipeline: Pipeline, source: Connection
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        Thread(target=server.serve_forever).start()
        url = f"http://127.0.0.1:{server.server_port}/apis/registry/v2"
        source.execute(f"ALTER TABLE t ADD w text DEFAULT '{CANARY}'".encode())
        status = fails_on(pipeline, source, {"value.converter.apicurio.registry.url": url})
        server.shutdown()
    assert "Exception" in status
    assert_only_kafka_has_it(chain_state)


def test_a_statement_of_the_connector_s_that_fails_on_a_value(
    chain_state: Path, pipeline: Pipeline, source: Connection
) -> None:
    now = worker_rest.configuration(pipeline.endpoints.connect, pipeline.name) or {}
    source.execute(f"INSERT INTO t VALUES ('{CANARY}')".encode())
    query = f"SELECT v::int FROM {pipeline.name}.t WHERE v LIKE 'canary%'"
    log = chain_state / "logs" / "connect.log"
    before = log.stat().st_size
    worker_rest.configure(
        pipeline.endpoints.connect, pipeline.name, now | {"heartbeat.action.query": query}
    )
    until(lambda: b"PSQLException" in log.read_bytes()[before:])
    assert_only_kafka_has_it(chain_state)
