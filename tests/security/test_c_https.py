"""A request by https names what is wrong with the server, and says nothing to it."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx
import pytest

from cdc import http_client
from cdc.errors import CdcError, ErrorKind
from tests.security.conftest import Trust
from tests.security.own_servers import HOST

pytestmark = pytest.mark.integration


@contextmanager
def answering(certificate: Path | None) -> Iterator[tuple[int, list[str | None]]]:
    """Yield the port of a server, and the logins that it gets; without certificate a plain one."""
    logins: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            logins.append(self.headers["Authorization"])
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

        def handle(self) -> None:
            try:
                super().handle()
            except (ssl.SSLError, ConnectionError):
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, certificate.with_suffix(".key"))
        # The handshake belongs to the connection's own thread.
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1], logins
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _url(port: int, ca_file: Path, host: str = HOST) -> str:
    url = http_client.with_login(f"https://{host}:{port}", "u", "hunter2")
    return http_client.with_ca(url, ca_file)


def test_a_server_that_the_ca_has_signed_gets_the_login(trust: Trust) -> None:
    with answering(trust.server) as (port, logins):
        url = _url(port, trust.ours.certificate)
        assert http_client.get(url, "/path", timeout=30).status_code == httpx.codes.OK
        assert http_client.without_login(url) == f"https://{HOST}:{port}"
    assert logins == ["Basic dTpodW50ZXIy"]


@pytest.mark.parametrize(
    ("certificate", "ca", "host", "reason"),
    [
        ("server", "other", HOST, "not trusted: unable to get local issuer certificate"),
        ("server", "ours", "127.0.0.1", "not trusted: IP address mismatch"),
        ("expired", "ours", HOST, "not trusted: certificate has expired"),
        ("", "ours", HOST, "does not speak TLS: "),
    ],
)
def test_any_other_is_refused_by_name(
    trust: Trust, certificate: str, ca: str, host: str, reason: str
) -> None:
    file = getattr(trust, certificate) if certificate else None
    with answering(file) as (port, logins), pytest.raises(CdcError) as caught:
        http_client.get(_url(port, getattr(trust, ca).certificate, host), timeout=30)
    error = caught.value
    assert error.kind is ErrorKind.CONFIG
    assert error.message.startswith(f"https://{host}:{port} ")
    assert reason in f"{error.message}: {error.detail}"
    assert logins == []
