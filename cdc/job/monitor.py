"""Serves the job's pages for monitoring: ``/metrics``, ``/healthz``, ``/readyz``, ``/status.json``.

They are there from the job's first second to its last, so that a probe sees a start as such.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import psutil
import structlog
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from cdc.client.status.exposition import metrics
from cdc.client.status.status import Status, status
from cdc.client.status.status_facts import facts
from cdc.client.status.status_findings import StatusFinding, findings, live
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.lake.files.unreachable import unreachable
from cdc.state import monitor_address

FRESH_SECONDS: Final = 1.0
"""Requests within this time share one look at all components."""
_TEXT: Final = "text/plain; charset=utf-8"
_MISDIRECTED: Final = b"on the loopback these pages are for localhost; monitor.listen moves them\n"
logger = structlog.get_logger(__name__)


class Page(NamedTuple):
    """Holds the answer to a request for a page."""

    code: HTTPStatus
    content_type: str
    body: bytes


@contextmanager
def monitored(config: Config) -> Iterator[None]:
    """Serve the pages while the block lasts; raise CONFIG if the address cannot be used."""
    if not config.monitor.listen:
        yield
        return
    with _server(config) as server:
        host, port = server.server_address[:2]
        monitor_address.write(config.state_dir, f"http://{_shown(str(host))}:{port}")
        thread = threading.Thread(target=server.serve_forever, name="monitor", daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()


def _is_local(host: str) -> bool:
    """Return whether only this machine reaches an address: a name's, or one in digits."""
    return host == "localhost" or (_is_address(host) and ip_address(host).is_loopback)


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def names_this_machine(host: str) -> bool:
    """Return whether a request's ``Host`` is one that no stranger can give this machine.

    A page in a browser reads ours by a name of its own that it lets resolve to the loopback; the
    name is in the request. ``host`` may have a port.
    """
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    return name == "localhost" or _is_address(name)


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _server(config: Config) -> ThreadingHTTPServer:
    host, _, port = config.monitor.listen.rpartition(":")
    host = host.strip("[]")
    handler = type("Handler", (_Handler,), {"pages": Pages(config), "is_local": _is_local(host)})
    try:
        server = ThreadingHTTPServer((host, int(port)), handler)
    except OSError as error:
        raise CdcError(
            ErrorKind.CONFIG,
            f"monitor.listen: {config.monitor.listen} cannot be opened",
            detail=error.strerror or str(error),
            remedy="choose an address of this machine and a free port",
        ) from None
    server.daemon_threads = True
    return server


class Pages:
    """Makes the pages of one job; any thread may ask for them."""

    def __init__(self, config: Config, ask: Callable[[Config], Status] = status) -> None:
        self._config = config
        self._ask = ask
        self._lock = threading.Lock()
        self._seen: tuple[float, Status] | None = None
        self._registry = CollectorRegistry()
        self._registry.register(_Collector(self.now))
        self._pages: dict[str, Callable[[], Page]] = {
            "/metrics": self._metrics,
            "/healthz": self._health,
            "/readyz": self._readiness,
            "/status.json": self._status,
        }

    def page(self, path: str) -> Page:
        """Return the page at a path; 404 names those that there are.

        While the lake's object store does not answer, every page says so, with 503.
        """
        make = self._pages.get(path)
        if make is None:
            there = ", ".join(self._pages)
            return Page(HTTPStatus.NOT_FOUND, _TEXT, f"there are {there}\n".encode())
        try:
            return make()
        except Exception as error:
            if (named := unreachable(error)) is None:
                raise
            return _unavailable(f"{named.message} ({named.detail}); remedy: {named.remedy}\n")

    def now(self) -> Status:
        """Return the status of a moment ago: many may ask, and each look asks every component."""
        with self._lock:
            if self._seen is None or time.monotonic() - self._seen[0] > FRESH_SECONDS:
                self._seen = (time.monotonic(), self._ask(self._config))
            return self._seen[1]

    def _metrics(self) -> Page:
        return Page(HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(self._registry))

    def _status(self) -> Page:
        now = self.now()
        text = json.dumps(facts(now, findings(now)))
        return Page(HTTPStatus.OK, "application/json", text.encode())

    def _health(self) -> Page:
        return _judged(live(findings(self.now())))

    def _readiness(self) -> Page:
        now = self.now()
        if not now.job.alive or now.job.state != "applying":
            return _unavailable(f"the job is {now.job.state}\n")
        return _judged(live(findings(now)))


def _judged(problems: list[StatusFinding]) -> Page:
    if not problems:
        return Page(HTTPStatus.OK, _TEXT, b"all is well\n")
    return _unavailable(
        "".join(f"{problem.what}; remedy: {problem.remedy}\n" for problem in problems)
    )


def _unavailable(text: str) -> Page:
    return Page(HTTPStatus.SERVICE_UNAVAILABLE, _TEXT, text.encode())


class _Collector(Collector):
    """Makes the metrics when they are asked for."""

    def __init__(self, now: Callable[[], Status]) -> None:
        self._now = now

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of this moment."""
        now = self._now()
        yield from metrics(now, findings(now))
        yield _memory()


def _memory() -> Metric:
    """Return the resident memory of this process and of its JVM."""
    family = GaugeMetricFamily(
        "wal2lake_job_memory_bytes", "Resident memory of the job.", labels=["process"]
    )
    this = psutil.Process()
    family.add_metric(["python"], float(this.memory_info().rss))
    machines = [child for child in this.children(recursive=True) if child.name() == "java"]
    family.add_metric(["java"], float(sum(child.memory_info().rss for child in machines)))
    return family


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD."""

    pages: Pages
    is_local: bool

    def do_GET(self) -> None:
        """Answer with the page."""
        self.wfile.write(self._answer().body)

    def do_HEAD(self) -> None:
        """Answer as GET does, without the page."""
        self._answer()

    def _answer(self) -> Page:
        page = self._page()
        self.send_response(page.code)
        self.send_header("Content-Type", page.content_type)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Content-Length", str(len(page.body)))
        self.end_headers()
        return page

    def _page(self) -> Page:
        try:
            if self.is_local and not names_this_machine(self.headers.get("Host", "localhost")):
                return Page(HTTPStatus.MISDIRECTED_REQUEST, _TEXT, _MISDIRECTED)
            return self.pages.page(self.path.partition("?")[0])
        except Exception as error:  # noqa: BLE001 - a probe must get an answer
            logger.warning("a page cannot be made", error=type(error).__name__)
            return Page(HTTPStatus.INTERNAL_SERVER_ERROR, _TEXT, b"see the job's log\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - of http.server
        """Log nothing: a probe asks every few seconds."""
