"""A server of one Lease, as far as a holder uses the API: versions, conflicts, a token."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

TOKEN: Final = "of-the-account"
PATH: Final = "/apis/coordination.k8s.io/v1/namespaces/lakes/leases/wal2lake"


class LeaseServer:
    """Keeps the lease; ``history`` has the holder after each write."""

    def __init__(self) -> None:
        self.history: list[str] = []
        self.port = 0
        self._lock = threading.Lock()
        self._lease: dict[str, Any] = {
            "metadata": {"name": "wal2lake", "resourceVersion": "1"},
        }

    @property
    def spec(self) -> dict[str, Any]:
        """Return what the lease says now."""
        return dict(self._lease.get("spec", {}))

    @property
    def holder(self) -> str:
        """Who holds it now; empty if nobody does."""
        return str(self.spec.get("holderIdentity", ""))

    def read(self) -> dict[str, Any]:
        """Return the lease with its version."""
        with self._lock:
            return deepcopy(self._lease)

    def write(self, lease: dict[str, Any]) -> bool:
        """Replace it, unless it is not of the present version."""
        with self._lock:
            version = self._lease["metadata"]["resourceVersion"]
            if lease["metadata"]["resourceVersion"] != version:
                return False
            lease["metadata"]["resourceVersion"] = str(int(version) + 1)
            self._lease = lease
            self.history.append(lease["spec"].get("holderIdentity", ""))
            return True

    def give(self, holder: str, seconds: int) -> None:
        """Make somebody else its holder, whoever holds it."""
        lease = self.read()
        lease["spec"] = {"holderIdentity": holder, "leaseDurationSeconds": seconds}
        assert self.write(lease)

    @contextmanager
    def serving(self) -> Iterator[None]:
        """Listen on a free port of the loopback address."""
        handler = type("Handler", (_Handler,), {"server_of": self})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        self.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


class _Handler(BaseHTTPRequestHandler):
    server_of: LeaseServer

    def do_GET(self) -> None:
        if self._is_allowed():
            self._answer(HTTPStatus.OK, self.server_of.read())

    def do_PUT(self) -> None:
        lease = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self._is_allowed():
            done = self.server_of.write(lease)
            self._answer(HTTPStatus.OK if done else HTTPStatus.CONFLICT, {})

    def _is_allowed(self) -> bool:
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            self._answer(HTTPStatus.UNAUTHORIZED, {})
        elif self.path != PATH:
            self._answer(HTTPStatus.NOT_FOUND, {})
        else:
            return True
        return False

    def _answer(self, code: HTTPStatus, body: dict[str, Any]) -> None:
        text = json.dumps(body).encode()
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - of http.server
        """Log nothing."""
