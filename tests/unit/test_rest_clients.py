"""Tests of the registry's and the worker's clients against a server with given answers."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import pytest

from cdc.errors import CdcError, ErrorKind
from cdc.kafka.registry_client import RegistryClient
from cdc.source.connector import worker_rest

Answer = tuple[int, Any]


@contextmanager
def serving(answer: Callable[[str, str], Answer]) -> Iterator[tuple[str, list[str]]]:
    """Serve the answers; yield the address and the requests received."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(f"{self.command} {self.path}")
            self.rfile.read(int(self.headers.get("content-length") or 0))
            status, body = answer(self.command, self.path)
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815 - the base class's names

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_schema_is_read_once() -> None:
    with serving(lambda _, path: (200, {"schema": path[-1]})) as (url, requests):
        client = RegistryClient(url)
        assert client.schemas([7, 8, 7]) == {7: "7", 8: "8"}
        assert client.schema(7) == "7"
    assert [path[-1] for path in requests] == ["7", "8"]


def test_a_schema_that_the_registry_cannot_read_is_taken_as_written() -> None:
    """For a float column with DEFAULT 'NaN' the connector writes NaN into the schema."""
    fields = [{"name": "default", "type": ["null", "double"], "default": float("nan")}]
    written = {"type": "record", "name": "r", "fields": fields}

    def answer(_: str, path: str) -> Answer:
        return (400, {"error_code": 0}) if "ccompat" in path else (200, written)

    with serving(answer) as (url, requests):
        found = RegistryClient(url).schema(7)

    assert found is not None
    assert json.loads(found) == {
        "type": "record",
        "name": "r",
        "fields": [{"name": "default", "type": ["null", "double"]}],
    }
    assert requests == [
        "GET /apis/ccompat/v7/schemas/ids/7",
        "GET /apis/registry/v2/ids/contentIds/7",
    ]


def test_an_unknown_schema_is_requested_again() -> None:
    answers = iter([(404, {}), (404, {}), (200, {"schema": "late"})])

    def answer(_: str, path: str) -> Answer:
        return (200, {}) if path == "/health/ready" else next(answers)

    with serving(answer) as (url, _):
        client = RegistryClient(url)
        assert client.schemas([7]) == {}
        assert client.schemas([7]) == {7: "late"}


def test_a_registry_without_a_health_page_is_believed() -> None:
    with serving(lambda *_: (404, {})) as (url, _):
        assert RegistryClient(url).schema(7) is None


@pytest.mark.parametrize("not_ready", [0, 1])
def test_a_schema_may_be_loaded_between_two_requests(not_ready: int) -> None:
    """The registry becomes ready after its first answer, or after being found not ready once."""
    unknown: Answer = (404, {})
    health: Iterator[Answer] = iter([*[(503, {})] * not_ready, (200, {})])
    schemas = iter([*[unknown] * (not_ready + 1), (200, {"schema": "s"})])

    def answer(_: str, path: str) -> Answer:
        return next(health) if path == "/health/ready" else next(schemas)

    with serving(answer) as (url, _):
        assert RegistryClient(url).schema(7) == "s"


def test_a_registry_that_keeps_loading_is_unreachable() -> None:
    def answer(_: str, path: str) -> Answer:
        return (503, {}) if path == "/health/ready" else (404, {})

    with serving(answer) as (url, _), pytest.raises(CdcError, match="it is not ready") as caught:
        RegistryClient(url).schema(7)
    assert caught.value.kind is ErrorKind.UNREACHABLE


def test_a_registry_s_transient_errors_are_retried() -> None:
    answers = iter([(503, {}), (500, {}), (200, {"schema": "s"})])
    with serving(lambda *_: next(answers)) as (url, _):
        assert RegistryClient(url).schema(1) == "s"


@pytest.mark.parametrize("answer", [(500, {}), (403, {}), (200, {"message": "no schema in it"})])
def test_a_registry_that_fails(answer: Answer) -> None:
    with serving(lambda *_: answer) as (url, _), pytest.raises(CdcError) as caught:
        RegistryClient(url).schema(1)
    assert caught.value.kind is ErrorKind.UNREACHABLE


def test_status_of_a_failed_task() -> None:
    inner = "java.net.UnknownHostException: the reason"
    trace = f"Outer: it ended\n\tat a.b\nCaused by: {inner}\n\tat c.d"
    state = {
        "connector": {"state": "RUNNING"},
        "tasks": [{"state": "FAILED", "trace": trace}],
    }
    with serving(lambda *_: (200, state)) as (url, _):
        found = worker_rest.status(url, "c")
    assert found is not None
    assert not found.running
    assert found.failure == "the reason"


def test_a_connector_without_a_task_does_not_run() -> None:
    state = {"connector": {"state": "RUNNING"}, "tasks": []}
    with serving(lambda *_: (200, state)) as (url, _):
        found = worker_rest.status(url, "c")
    assert found is not None
    assert not found.running


def test_nothing_to_configure() -> None:
    with serving(lambda *_: (200, {"a": "1", "name": "c"})) as (url, requests):
        assert not worker_rest.configure(url, "c", {"a": "1"})
    assert requests == ["GET /connectors/c/config"]


def test_refused_configuration_does_not_show_the_password() -> None:
    def answer(method: str, _: str) -> Answer:
        if method == "GET":
            return 404, {}
        return 400, {"message": "invalid:\npassword hunter2 for user u"}

    with serving(answer) as (url, _), pytest.raises(CdcError) as caught:
        worker_rest.configure(url, "c", {worker_rest.PASSWORD: "hunter2"})
    assert caught.value.kind is ErrorKind.SOURCE_NOT_READY
    assert caught.value.detail == "invalid: password *** for user u"


FENCED: Final = (
    "Failed to write to config topic; this may be due to a transient error and the request can be "
    "safely retried"
)


@pytest.mark.parametrize("first", [(409, {}), (500, {"message": FENCED})])
def test_what_a_worker_cannot_do_for_now_is_asked_again(first: Answer) -> None:
    """It rebalances, or another producer has taken its place at the topic of its settings."""
    answers: Iterator[Answer] = iter([first, first, (202, {})])
    with serving(lambda *_: next(answers)) as (url, requests):
        worker_rest.resume(url, "c")
    assert requests == ["PUT /connectors/c/resume"] * 3


def test_another_error_of_a_worker_is_told_at_once() -> None:
    with (
        serving(lambda *_: (500, {"message": "no such class"})) as (url, requests),
        pytest.raises(CdcError, match="resuming the connector: Kafka Connect answers 500"),
    ):
        worker_rest.resume(url, "c")
    assert requests == ["PUT /connectors/c/resume"]


def test_no_worker() -> None:
    with serving(lambda *_: (200, {})) as (url, _):
        pass
    with pytest.raises(CdcError) as caught:
        worker_rest.status(url, "c")
    assert caught.value.kind is ErrorKind.UNREACHABLE
    assert "correct connect.url" in caught.value.remedy
