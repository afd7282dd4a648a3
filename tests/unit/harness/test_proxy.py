"""The proxy of the fault tests drops, stalls and slows connections."""

import socket
import socketserver
import threading
from collections.abc import Iterator

import pytest

from cdc.stack.servers.server import LOOPBACK
from tests.servers.proxy import Proxy, proxied
from tests.waiting import until

PATIENCE = 0.3  # seconds within which an answer would have come


class Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        while piece := self.request.recv(1024):
            self.request.sendall(piece)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server((LOOPBACK, 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        with proxied(LOOPBACK, server.server_address[1]) as running:
            yield running
        server.shutdown()
        thread.join()


def connected(proxy: Proxy) -> socket.socket:
    client = socket.create_connection(proxy.address, timeout=10)
    client.sendall(b"first")
    assert client.recv(5) == b"first"
    return client


def is_reset(client: socket.socket) -> bool:
    try:
        client.sendall(b"?")
        return client.recv(1) == b""
    except ConnectionError:
        return True


def test_it_passes_everything_on_both_ways(proxy: Proxy) -> None:
    with connected(proxy) as client:
        client.sendall(b"x" * 100_000)
        received = b""
        while len(received) < 100_000:
            received += client.recv(65536)
    assert received == b"x" * 100_000
    until(lambda: proxy.passed == 2 * 100_005)


def test_dropped_connections_are_reset_and_new_ones_too(proxy: Proxy) -> None:
    with connected(proxy) as client:
        with proxy.dropped():
            assert is_reset(client)
            with socket.create_connection(proxy.address, timeout=10) as late:
                assert is_reset(late)
        with connected(proxy):
            pass


def test_a_stalled_connection_stays_and_what_was_sent_comes_later(proxy: Proxy) -> None:
    with connected(proxy) as client:
        with proxy.stalled():
            client.sendall(b"later")
            client.settimeout(PATIENCE)
            with pytest.raises(TimeoutError):
                client.recv(5)
        client.settimeout(10)
        assert client.recv(5) == b"later"


def test_a_slow_connection_takes_its_time(proxy: Proxy) -> None:
    with connected(proxy) as client, proxy.slowed(1000):
        client.sendall(b"x" * 1000)
        client.settimeout(PATIENCE)
        with pytest.raises(TimeoutError):
            client.recv(1000)
