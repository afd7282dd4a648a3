"""Tests of the one HTTP client: credentials, proxies, and that no code goes around it."""

import ast
import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

import httpx
import pytest

import cdc
from cdc import http_client
from cdc.client.check import check
from cdc.client.status import components
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.kafka.registry_client import RegistryClient
from cdc.source.connector import worker_rest
from cdc.source.server.finding import Level
from cdc.stack.servers import connect as worker
from cdc.stack.servers import registry
from cdc.stack.supervise.connector_watch import Absence, ConnectorWatch
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline

DEAD: Final = "http://127.0.0.1:9"
PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy")
ROOT: Final = Path(cdc.__file__).parent


@contextmanager
def answering() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Serve good answers; yield the address, and the path and credentials of each request."""
    requests: list[tuple[str, str]] = []
    answer = (
        b'{"connector": {"state": "RUNNING"}, "tasks": [{"state": "FAILED", "trace": "t"}],'
        b' "schema": "s"}'
    )

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append((self.path, self.headers.get("authorization", "")))
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_GET  # noqa: N815 - the base class's names

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def dead_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.setenv(name, DEAD)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("dead_proxies")
def test_requests_to_embedded_servers_use_no_proxy() -> None:
    with answering() as (place, requests):
        url = f"http://{place}"
        assert worker.is_answering(url)
        assert registry.is_answering(url)
        assert RegistryClient(url).schema(7) == "s"
        assert worker_rest.status(url, "c") is not None
        assert components.connector(url, "c").state == "FAILED"
        watch = ConnectorWatch(url, "c", Absence(lambda: True))
        assert watch.look(0) is not None
    assert requests[-1][0].startswith("/connectors/c/restart")


@pytest.mark.parametrize("name", PROXIES)
def test_requests_to_another_machine_use_the_environment_s_proxy(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for variable in (*PROXIES, "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(variable, raising=False)
    scheme = "https" if "https" in name.lower() else "http"
    url = f"{scheme}://registry.invalid/health"
    with answering() as (place, requests):
        monkeypatch.setenv(name, f"http://{place}")
        if scheme == "http":
            assert http_client.get(url, timeout=5).status_code == httpx.codes.OK
        else:  # this proxy refuses to make a tunnel
            with pytest.raises(httpx.ProxyError):
                http_client.get(url, timeout=5)
        monkeypatch.setenv("NO_PROXY", "registry.invalid")
        with pytest.raises(httpx.ConnectError):
            http_client.get(url, timeout=5)
    assert len(requests) == (scheme == "http")


def test_a_proxy_that_cannot_be_used_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "gopher://p:1")
    with pytest.raises(CdcError, match="proxy set in the environment") as caught:
        http_client.get("http://u:hunter2@registry.invalid/", timeout=1)
    assert caught.value.kind is ErrorKind.CONFIG
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:1", True),
        ("http://127.9.9.9", True),
        ("http://u:p@localhost:8083/x", True),
        ("http://[::1]:1", True),
        ("http://connect.localhost", True),
        ("http://10.0.0.1", False),
        ("http://localhost.example.org", False),
        ("http://127.0.0.1@example.org", False),
    ],
)
def test_which_addresses_are_on_this_machine(url: str, *, local: bool) -> None:
    assert http_client.is_local(url) is local


def test_credentials_are_sent_with_every_request() -> None:
    with answering() as (place, requests):
        url = http_client.with_login(f"http://{place}", "u:@/", "p %:@/")
        assert http_client.without_login(url) == f"http://{place}"
        worker_rest.status(url, "c")
        components.connector(url, "c")
        assert worker.is_answering(url)
    # A user may not contain a colon in basic authentication; all else arrives unchanged.
    expected = "Basic " + base64.b64encode(b"u:@/:p %:@/").decode()
    assert {header for _, header in requests} == {expected}


@pytest.mark.parametrize("ask", [worker_rest.status, components.connector])
def test_an_error_shows_no_credentials(ask: object) -> None:
    url = http_client.with_login(DEAD, "u", "hunter2")
    with pytest.raises(CdcError) as caught:
        ask(url, "c")  # type: ignore[operator]
    assert "127.0.0.1:9" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_check_warns_of_a_password_in_clear_text() -> None:
    with answering() as (place, _):
        settings = {"source": {"tables": ["s.*"]}, "lake": {"path": "/nowhere"}}
        config = Config.model_validate({**settings, "connect": {"url": f"http://{place}"}})
        source = "postgresql://app:hunter2@127.0.0.1:1/app"
        endpoints = Endpoints(
            source_url=source, kafka=Broker(""), connect=f"http://{place}", registry=""
        )
        found = {finding.subject: finding for finding in check(Pipeline(config, endpoints))}
    assert found["connect.source_password"].level is Level.WARNING
    assert "hunter2" not in str(found)


def test_a_refused_login_names_the_user_s_key() -> None:
    """401 is not an outage: the credentials are wrong."""
    with refusing() as url, pytest.raises(CdcError) as caught:
        worker_rest.status(url, "c")
    assert "connect.user" in caught.value.remedy
    with refusing() as url, pytest.raises(CdcError) as caught:
        components.connector(url, "c")
    assert "connect.user" in caught.value.remedy


@contextmanager
def refusing() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(401)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_no_other_module_makes_http_requests() -> None:
    """The syntax trees use neither a function or client of httpx nor another library."""
    found = [
        f"{path.relative_to(ROOT)}:{line} {what}"
        for path in sorted(ROOT.rglob("*.py"))
        if path != Path(http_client.__file__)
        for line, what in _requests(ast.parse(path.read_text()))
    ]
    assert found == []


ASKS: Final = frozenset(
    {"get", "post", "put", "patch", "delete", "head", "options", "request", "stream"}
    | {"Client", "AsyncClient", "HTTPTransport"}
)
OTHERS: Final = frozenset(
    {"urllib.request", "urllib3", "requests", "http.client", "aiohttp", "socksio", "httpcore"}
)


def _requests(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="httpx"), attr=what) if what in ASKS:
                yield node.lineno, f"httpx.{what}"
            case ast.ImportFrom(module=str(module)):
                names = {f"{module}.{alias.name}" for alias in node.names}
                if module == "httpx" or OTHERS & {module, *names}:
                    yield node.lineno, f"from {module}"
            case ast.Import():
                for alias in node.names:
                    if alias.name in OTHERS or (alias.name == "httpx" and alias.asname):
                        yield node.lineno, f"import {alias.name}"
