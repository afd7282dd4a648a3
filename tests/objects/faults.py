"""A proxy before an object store that loses answers, refuses requests and is slow."""

import http.client
import socket
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any, Final

_HOP: Final = frozenset({"connection", "expect", "transfer-encoding", "keep-alive"})


class Fault(Enum):
    """What happens to a request."""

    NONE = "none"
    BUSY = "busy"  # 503, and the store never sees it
    LOST = "lost"  # the store has done it, and the connection breaks before the answer
    LATE_BUSY = "late busy"  # the store has done it, and the answer is 503


@dataclass(frozen=True, slots=True)
class Request:
    """What a plan decides by."""

    method: str
    path: str


Plan = Callable[[Request], Fault]


@dataclass(slots=True)
class Faults:
    """What becomes of each request; the plan may be replaced at any time."""

    plan: Plan = lambda _: Fault.NONE
    seconds: float = 0.0
    """How long each answer is held back."""
    met: list[tuple[Fault, Request]] = field(default_factory=list)
    """The requests that met a fault."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, request: Request) -> Fault:
        """Return what happens to the request."""
        with self._lock:
            fault = self.plan(request)
            if fault is not Fault.NONE:
                self.met.append((fault, request))
            return fault

    def heal(self) -> None:
        """Have no more faults."""
        self.plan, self.seconds = (lambda _: Fault.NONE), 0.0


def share(seed: int, of: dict[Fault, float]) -> Plan:
    """Return a plan in which each fault has a share of all requests."""
    random = Random(seed)
    kinds, weights = [*of, Fault.NONE], [*of.values(), 1 - sum(of.values())]
    return lambda _: random.choices(kinds, weights)[0]


def first(count: int, fault: Fault, method: str, part: str) -> Plan:
    """Return a plan in which the first requests of a method with this part in their path fail."""
    left = [count]

    def plan(request: Request) -> Fault:
        if not left[0] or request.method != method or part not in request.path:
            return Fault.NONE
        left[0] -= 1
        return fault

    return plan


class FaultyProxy(ThreadingHTTPServer):
    """Forwards requests to an object store on the loopback; clients use ``url``."""

    daemon_threads = True

    def __init__(self, port: int, listen: int = 0) -> None:
        super().__init__(("127.0.0.1", listen), _Handler)
        self.target = port
        self.faults = Faults()
        self.one = threading.Lock()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Say nothing of connections that clients have given up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultyProxy

    def _forward(self) -> None:
        body = self._body()
        fault = self.server.faults.of(Request(self.command, self.path))
        if fault is Fault.BUSY:
            self._answer(503, [], _BUSY)
            return
        status, headers, content = self._ask(body)
        time.sleep(self.server.faults.seconds)
        if fault is Fault.LOST:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif fault is Fault.LATE_BUSY:
            self._answer(503, [], _BUSY)
        else:
            self._answer(status, headers, content)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = list[bytes]()
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        # moto looks at a condition and writes in two steps; a store does both in one.
        conditional = {"if-match", "if-none-match"} & {name.lower() for name in self.headers}
        alone: AbstractContextManager[object] = self.server.one if conditional else nullcontext()
        with alone:
            return self._asked(body)

    def _asked(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.target, timeout=60)
        headers = {name: text for name, text in self.headers.items() if name.lower() not in _HOP}
        try:
            connection.request(self.command, self.path, body or None, headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        sized = any(name.lower() == "content-length" for name, _ in headers)
        for name, text in headers:
            if name.lower() not in _HOP:
                self.send_header(name, text)
        if not sized:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _forward  # noqa: N815 - http.server's names

    def log_message(self, *_: object) -> None:
        """Say nothing."""


_BUSY: Final = (
    b'<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Reduce your rate</Message></Error>'
)
