"""A proxy before an object store that loses answers and refuses requests.

It is a process of its own: delta-rs keeps Python from running anything else while it waits.
"""

import http.client
import json
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any, Final

CONTROL: Final = "/-/faults"
STALL_SECONDS: Final = 2.0
_HOP: Final = frozenset({"connection", "expect", "transfer-encoding", "keep-alive"})


class Fault(Enum):
    """Says what happens to a request."""

    NONE = "none"
    BUSY = "busy"  # 503, and the store never sees it
    LOST = "lost"  # the store has done it, and the connection breaks before the answer
    LATE_BUSY = "late busy"  # the store has done it, and the answer is 503
    FORBIDDEN = "forbidden"  # 403, and the store never sees it
    SLOW = "slow"  # the store has done it, and the answer comes after STALL_SECONDS
    GONE = "gone"  # the connection breaks, and the store never sees it


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Says which requests meet a fault: a share of all, or the first ones of a kind."""

    shares: Mapping[str, float] = field(default_factory=dict)  # by the value of a Fault
    seed: int = 0
    skip: int = 0  # so many requests of the kind are done before the first that fails
    count: int = 0
    delay: float = 0.0  # seconds before each request is done
    fault: str = Fault.NONE.value
    method: str = ""
    part: str = ""  # of the path


def share(seed: int, of: Mapping[Fault, float]) -> Plan:
    """Return a plan in which each fault has a share of all requests."""
    return Plan(seed=seed, shares={fault.value: weight for fault, weight in of.items()})


def first(count: int, fault: Fault, method: str = "", part: str = "", skip: int = 0) -> Plan:
    """Return a plan in which some requests of a method with this part in their path fail.

    Without a method, those of any; ``skip`` of them are done before.
    """
    return Plan(count=count, fault=fault.value, method=method, part=part, skip=skip)


def slow(seconds: float) -> Plan:
    """Return a plan in which each request takes so much longer."""
    return Plan(delay=seconds)


HEALTHY: Final = Plan()


class _Chooser:
    """Follows a plan; remembers the faults that requests have met, and counts the requests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.met: list[str] = []
        self.follow(HEALTHY)

    def follow(self, plan: Plan) -> None:
        """Follow another plan from now on."""
        with self._lock:
            self._plan, self._skipped, self._left, self.asked = plan, plan.skip, plan.count, 0
            self._random = Random(plan.seed)

    def fault(self, method: str, path: str) -> Fault:
        """Return what happens to a request."""
        with self._lock:
            self.asked += 1
            fault = self._chosen(method, path)
            if fault is not Fault.NONE:
                self.met.append(fault.value)
            return fault

    @property
    def delay(self) -> float:
        """How many seconds a request waits."""
        return self._plan.delay

    def _chosen(self, method: str, path: str) -> Fault:
        plan = self._plan
        if plan.method in {"", method} and plan.part in path:
            if self._skipped:
                self._skipped -= 1
            elif self._left:
                self._left -= 1
                return Fault(plan.fault)
        weights = [*plan.shares.values(), 1 - sum(plan.shares.values())]
        return Fault(self._random.choices([*plan.shares, Fault.NONE.value], weights)[0])


class FaultyProxy(ThreadingHTTPServer):
    """Forwards requests to an object store on the loopback."""

    daemon_threads = True

    def __init__(self, port: int, listen: int = 0) -> None:
        super().__init__(("127.0.0.1", listen), _Handler)
        self.target = port
        self.chooser = _Chooser()
        self.one = threading.Lock()
        self.waiting = threading.Event()  # never set

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401
        """Say nothing of connections that clients have given up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultyProxy

    def _forward(self) -> None:
        body = self._body()
        if self.path.startswith(CONTROL):
            self._controlled(body)
            return
        fault = self.server.chooser.fault(self.command, self.path)
        self.server.waiting.wait(self.server.chooser.delay)
        if fault is Fault.BUSY:
            self._answer(503, [], _BUSY)
            return
        if fault is Fault.FORBIDDEN:
            self._answer(403, [], _FORBIDDEN)
            return
        if fault is Fault.GONE:
            self._break()
            return
        status, headers, content = self._ask(body)
        if fault is Fault.SLOW:
            self.server.waiting.wait(STALL_SECONDS)
        if fault is Fault.LOST:
            self._break()
        elif fault is Fault.LATE_BUSY:
            self._answer(503, [], _BUSY)
        else:
            self._answer(status, headers, content)

    def _break(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _controlled(self, body: bytes) -> None:
        """Take another plan (PUT); tell which faults were met, and how much was asked since."""
        chooser = self.server.chooser
        if self.command == "PUT":
            chooser.follow(Plan(**json.loads(body)))
        self._answer(200, [], json.dumps([chooser.met, chooser.asked]).encode())

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
_FORBIDDEN: Final = (
    b'<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Access denied</Message></Error>'
)


if __name__ == "__main__":
    proxy = FaultyProxy(int(sys.argv[1]), int(sys.argv[2]))
    proxy.serve_forever()
