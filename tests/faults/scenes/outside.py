"""An installation that embeds no server, with a proxy between any two of its parts.

The servers are those of the embedded stack, started here one by one. An embedded one is reached at
its own port by everybody, so that nothing could stand in front of it.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil
import pytest

from cdc.stack.servers.connect import ConnectServer
from cdc.stack.servers.kafka import KafkaServer
from cdc.stack.servers.ports import choose
from cdc.stack.servers.registry import RegistryServer
from cdc.stack.servers.server import LOOPBACK, Server
from cdc.state.directory import StateDir
from cdc.state.endpoints import password_reference, write_source_secret
from tests.faults.bank.armed import NAME, Armed
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
"""Of each server; the commands and the supervisor go the way of the job."""


@dataclass(frozen=True, kw_only=True)
class Broker(KafkaServer):
    """With a listener for each client, at which it says that the broker is where its proxy is."""

    ports: dict[str, int] = field(default_factory=dict)
    advertised: dict[str, str] = field(default_factory=dict)

    def _settings(self) -> dict[str, str | int]:
        found = super()._settings()
        listeners = {name.upper(): f"{LOOPBACK}:{port}" for name, port in self.ports.items()}
        addresses = {name.upper(): place for name, place in self.advertised.items()}
        plain = dict.fromkeys(listeners, "PLAINTEXT")
        return found | {
            "listeners": _listed(found["listeners"], listeners, "://"),
            "advertised.listeners": _listed(found["advertised.listeners"], addresses, "://"),
            "listener.security.protocol.map": _listed(
                found["listener.security.protocol.map"], plain, ":"
            ),
        }


def _listed(given: str | int, added: Mapping[str, str], between: str) -> str:
    return ",".join([str(given), *(f"{name}{between}{text}" for name, text in added.items())])


@dataclass
class Outside:
    """What was started, and what stands between."""

    state: StateDir
    stack: ExitStack
    ports: dict[str, int]
    proxies: dict[Pair, Proxy] = field(default_factory=dict)
    pids: dict[str, int] = field(default_factory=dict)

    def stand_before(self, server: str, addresses: Mapping[str, str]) -> dict[str, str]:
        """By client, the server's address for it, and by which way it gets there."""
        ways = {}
        for client, address in addresses.items():
            proxy = self.stack.enter_context(in_front_of(address))
            self.proxies[client, server] = proxy
            ways[client] = by_way_of(proxy, address)
        return ways

    def start(self, server: Server, address: str) -> None:
        process = ProcessServer(embedded=server, address=address, state=self.state)
        self.stack.callback(process.kill)
        process.start()
        self.note(process)

    def note(self, server: Started) -> None:
        """What its process is."""
        assert isinstance(server, ProcessServer)
        assert server.process is not None
        self.pids[server.name] = server.process.pid

    def around(self) -> list[str]:
        """Connections to a server that come from neither its proxies, this test nor itself."""
        ends = psutil.net_connections(kind="tcp")
        owners = {
            _port(each.laddr): each.pid
            for each in ends
            if each.status == psutil.CONN_LISTEN and each.pid in self.pids.values()
        }
        found = [(each.pid, _port(each.raddr)) for each in ends if _port(each.raddr) in owners]
        known = {None, psutil.Process().pid}
        return [
            f"process {pid} to port {port}"
            for pid, port in found
            if pid not in {*known, owners[port]}
        ]


def _port(end: tuple[Any, ...]) -> int | None:
    return end[1] if end else None


@contextmanager
def outside(request: pytest.FixtureRequest, root: Path) -> Iterator[tuple[Scene, Outside]]:
    """Up, with the first snapshot in the lake; nothing is left running afterwards."""
    with ExitStack() as stack:
        postgres = stack.enter_context(started(request, root / "source", ("postgres",)))["postgres"]
        state = StateDir((root / "servers").resolve())
        state.create()
        made = Outside(state, stack, choose(state, {}))
        made.note(postgres)
        write_source_secret(state, postgres.address)
        bank = Armed.of(root / "lakehouse", postgres, PATTERNS)
        keys = _started(made, postgres.address)
        bank.configure(lambda written: _configure(written, keys))
        stack.enter_context(brought_up(bank))
        yield Scene(bank=bank, walk=Walk(bank), proxies=made.proxies), made


def _configure(written: dict[str, Any], keys: Mapping[str, dict[str, str]]) -> None:
    for section, found in keys.items():
        written.setdefault(section, {}).update(found)


def _started(made: Outside, source_url: str) -> dict[str, dict[str, str]]:
    """Every server but the source; the keys of the configuration by which they are reached."""
    source = made.stand_before("source", dict.fromkeys(CLIENTS["source"], source_url))
    kafka = _kafka(made)
    registry = _registry(made, kafka["registry"])
    connect = _connect(made, kafka["connect"])
    return {
        "source": {"url": source["job"]},
        "kafka": {"bootstrap_servers": kafka["job"]},
        "registry": {"url": registry["job"]},
        "connect": {
            "url": connect["job"],
            "source_url": source["connect"],
            "source_password": password_reference(made.state.root),
            "registry_url": registry["connect"],
        },
    }


def _kafka(made: Outside) -> dict[str, str]:
    ports = {client: free_port() for client in CLIENTS["kafka"]}
    places = {client: f"{LOOPBACK}:{port}" for client, port in ports.items()}
    ways = made.stand_before("kafka", places)
    broker = Broker(
        made.state, made.ports["kafka"], made.ports["controller"], ports=ports, advertised=ways
    )
    made.start(broker, broker.bootstrap)
    return ways


def _registry(made: Outside, kafka: str) -> dict[str, str]:
    server = RegistryServer(made.state, made.ports["registry"], kafka, NAME)
    made.start(server, server.url)
    return made.stand_before("registry", dict.fromkeys(CLIENTS["registry"], server.url))


def _connect(made: Outside, kafka: str) -> dict[str, str]:
    server = ConnectServer(made.state, made.ports["connect"], kafka, NAME)
    made.start(server, server.url)
    return made.stand_before("connect", dict.fromkeys(CLIENTS["connect"], server.url))
