"""Runs an installation that embeds no server, with a proxy between any two of its parts.

Its servers are those of the embedded stack, started one by one. In an embedded stack all clients
use a server's own port, so that no proxy could be placed in front of it.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from cdc.kafka.broker import Broker
from cdc.stack.servers.connect import ConnectServer
from cdc.stack.servers.kafka import KafkaServer
from cdc.stack.servers.ports import choose
from cdc.stack.servers.registry import RegistryServer
from cdc.stack.servers.server import LOOPBACK, Server
from cdc.state.directory import StateDir
from cdc.state.endpoints import password_reference, write_connector_secrets
from tests.faults.bank.armed import NAME, Armed, job_of
from tests.faults.bank.walk import Walk
from tests.faults.conftest import PATTERNS
from tests.faults.scenes.scene import Pair, Scene, brought_up, by_way_of, in_front_of
from tests.servers.container import free_port
from tests.servers.fixtures import started
from tests.servers.process import ProcessServer
from tests.servers.proxy import Proxy
from tests.servers.server import Server as Started

CLIENTS: Final = {
    "source": ("job", "connect"),
    "kafka": ("job", "connect", "registry"),
    "registry": ("job", "connect"),
    "connect": ("job",),
}
"""The clients of each server; commands and the supervisor use the same proxy as the job."""


@dataclass(frozen=True, kw_only=True)
class ProxiedBroker(KafkaServer):
    """Gives the broker a listener for each client, which advertises that client's proxy."""

    ports: dict[str, int] = field(default_factory=dict)
    advertised: dict[str, str] = field(default_factory=dict)

    def _settings(self) -> dict[str, str | int]:
        settings = super()._settings()
        listeners = {name.upper(): f"{LOOPBACK}:{port}" for name, port in self.ports.items()}
        addresses = {name.upper(): place for name, place in self.advertised.items()}
        plain = dict.fromkeys(listeners, "PLAINTEXT")
        return settings | {
            "listeners": _listed(settings["listeners"], listeners, "://"),
            "advertised.listeners": _listed(settings["advertised.listeners"], addresses, "://"),
            "listener.security.protocol.map": _listed(
                settings["listener.security.protocol.map"], plain, ":"
            ),
        }


def _listed(given: str | int, added: Mapping[str, str], between: str) -> str:
    return ",".join([str(given), *(f"{name}{between}{text}" for name, text in added.items())])


@dataclass
class Outside:
    """The servers that were started and the proxies between them."""

    state: StateDir
    stack: ExitStack
    ports: dict[str, int]
    proxies: dict[Pair, Proxy] = field(default_factory=dict)
    pids: dict[str, int] = field(default_factory=dict)

    def stand_before(self, server: str, addresses: Mapping[str, str]) -> dict[str, str]:
        """Put a proxy before the server for each client; return the proxied addresses by client."""
        ways = {}
        for client, address in addresses.items():
            proxy = self.stack.enter_context(in_front_of(address))
            self.proxies[client, server] = proxy
            ways[client] = by_way_of(proxy, address)
        return ways

    def start(self, server: Server, address: str) -> None:
        """Start a server of the embedded stack; it is killed at the end."""
        process = ProcessServer(embedded=server, address=address, state=self.state)
        self.stack.callback(process.kill)
        process.start()
        self.note(process)

    def note(self, server: Started) -> None:
        """Record the pid of the server's process."""
        assert isinstance(server, ProcessServer)
        assert server.process is not None
        self.pids[server.name] = server.process.pid

    def around(self) -> list[str]:
        """Return connections that bypass the proxies, except this test's and the servers' own."""
        ends = psutil.net_connections(kind="tcp")
        owners = {
            _port(end.laddr): end.pid
            for end in ends
            if end.status == psutil.CONN_LISTEN and end.pid in self.pids.values()
        }
        to_servers = [(end.pid, _port(end.raddr)) for end in ends if _port(end.raddr) in owners]
        allowed = {None, psutil.Process().pid}
        return [
            f"process {pid} to port {port}"
            for pid, port in to_servers
            if pid not in {*allowed, owners[port]}
        ]


def _port(end: tuple[Any, ...]) -> int | None:
    return end[1] if end else None


@contextmanager
def outside(request: pytest.FixtureRequest, root: Path) -> Iterator[tuple[Scene, Outside]]:
    """Yield a running installation behind proxies, with its first snapshot in the lake."""
    with ExitStack() as stack:
        postgres = stack.enter_context(started(request, root / "source", ("postgres",)))["postgres"]
        state = StateDir((root / "servers").resolve())
        state.create()
        setting = Outside(state, stack, choose(state, {}))
        setting.note(postgres)
        write_connector_secrets(state, postgres.address, "")
        bank = Armed.of(root / "lakehouse", postgres, PATTERNS, job=job_of(request.config))
        keys = _started(setting, postgres.address)
        bank.configure(lambda written: _configure(written, keys))
        stack.enter_context(brought_up(bank))
        yield Scene(bank=bank, walk=Walk(bank), proxies=setting.proxies), setting


def _configure(written: dict[str, Any], keys: Mapping[str, dict[str, str]]) -> None:
    for section, values in keys.items():
        written.setdefault(section, {}).update(values)


def _started(setting: Outside, source_url: str) -> dict[str, dict[str, str]]:
    """Start every server but the source; return the configuration keys that reach them."""
    source = setting.stand_before("source", dict.fromkeys(CLIENTS["source"], source_url))
    kafka = _kafka(setting)
    registry = _registry(setting, kafka["registry"])
    connect = _connect(setting, kafka["connect"])
    return {
        "source": {"url": source["job"]},
        "kafka": {"bootstrap_servers": kafka["job"]},
        "registry": {"url": registry["job"]},
        "connect": {
            "url": connect["job"],
            "source_url": source["connect"],
            "source_password": password_reference(setting.state.root),
            "registry_url": registry["connect"],
        },
    }


def _kafka(setting: Outside) -> dict[str, str]:
    ports = {client: free_port() for client in CLIENTS["kafka"]}
    places = {client: f"{LOOPBACK}:{port}" for client, port in ports.items()}
    ways = setting.stand_before("kafka", places)
    own, controller = setting.ports["kafka"], setting.ports["controller"]
    broker = ProxiedBroker(setting.state, own, controller, ports=ports, advertised=ways)
    setting.start(broker, broker.broker.bootstrap)
    return ways


def _registry(setting: Outside, kafka: str) -> dict[str, str]:
    server = RegistryServer(setting.state, setting.ports["registry"], Broker(kafka), NAME)
    setting.start(server, server.url)
    return setting.stand_before("registry", dict.fromkeys(CLIENTS["registry"], server.url))


def _connect(setting: Outside, kafka: str) -> dict[str, str]:
    server = ConnectServer(setting.state, setting.ports["connect"], Broker(kafka), NAME)
    setting.start(server, server.url)
    return setting.stand_before("connect", dict.fromkeys(CLIENTS["connect"], server.url))
