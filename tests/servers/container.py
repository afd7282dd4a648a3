"""Runs the servers as containers, with image, environment and command from docker-compose.yml.

They differ from the deployed stack only in where they listen: on a free port of the loopback
address, chosen beforehand because Kafka has to advertise it before it starts.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import docker
import yaml
from docker.errors import DockerException
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network
from testcontainers.core.wait_strategies import HealthcheckWaitStrategy

from cdc.stack.servers.ports import is_free
from tests.servers.server import Server
from tools.images.compose import build

# Each test removes what it has started. The container that would do it too has an image that cannot
# be pulled everywhere, and asks for the engine's socket.
testcontainers_config.ryuk_disabled = True

ROOT = Path(__file__).resolve().parent.parent.parent
COMPOSE: Final[dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
PORTS: Final = {"postgres": 5432, "kafka": 9092, "registry": 8080, "connect": 8083}
PASSWORD: Final = "only-for-tests"
START_SECONDS: Final = 180
_candidates: Final = iter(random.SystemRandom().sample(range(10_000, 20_000), 10_000))
"""Below the range of outgoing connections, so that a server that is started again finds its port
free, and below the ports that wal2lake chooses for its embedded servers."""
WORKER: Final = {
    # Inside the network the servers have the names of docker-compose.yml.
    "source_url": "postgresql://postgres@postgres:5432/app",
    "source_password": "${env:POSTGRES_PASSWORD}",
    "registry_url": "http://registry:8080",
}


def why_not() -> str | None:
    """Return why no container can run here, or None if a Docker engine answers."""
    try:
        docker.from_env(timeout=5).ping()
    except DockerException as error:
        return f"no Docker engine: {type(error).__name__}"
    return None


def free_port() -> int:
    """Return a port of the loopback address that is free now, another one each time."""
    return next(port for port in _candidates if is_free(port))


@dataclass(kw_only=True)
class ContainerServer:
    """A service of docker-compose.yml; ``Server`` says what its methods promise."""

    name: str
    network: Network
    port: int = field(default_factory=free_port)
    container: DockerContainer | None = None

    def start(self) -> str:
        """Start the container and wait until its health check passes."""
        if self.container is None:
            self.container = self._create().start()
        else:
            self.container.get_wrapped_container().start()
            _healthy().wait_until_ready(self.container)
        return self.address

    def stop(self) -> None:
        """Stop the container in an orderly way."""
        if self.container is not None:
            seconds = _seconds(COMPOSE["services"][self.name].get("stop_grace_period", "10s"))
            self.container.get_wrapped_container().stop(timeout=seconds)

    def kill(self) -> None:
        """Kill the container if it runs."""
        if self.container is not None:
            wrapped = self.container.get_wrapped_container()
            wrapped.reload()
            if wrapped.status == "running":
                wrapped.kill()

    def remove(self) -> None:
        """Stop and delete the container with its data."""
        if self.container is not None:
            self.container.stop()

    @property
    def address(self) -> str:
        """Return the address for clients on this machine."""
        loopback = f"127.0.0.1:{self.port}"
        return {
            "postgres": f"postgresql://postgres:{PASSWORD}@{loopback}/app",
            "kafka": loopback,
        }.get(self.name, f"http://{loopback}")

    def _create(self) -> DockerContainer:
        service = COMPOSE["services"][self.name]
        container = DockerContainer(
            image_of(self.name),
            network=self.network,
            network_aliases=[self.name],
            healthcheck=_healthcheck(service["healthcheck"]),
        )
        for key, value in self._environment(service).items():
            container = container.with_env(key, value)
        if "command" in service:
            container = container.with_command(service["command"])
        # The engine accepts an address with the port, which with_bind_ports cannot express.
        ports = cast("dict[str, Any]", container.ports)
        ports[str(PORTS[self.name])] = ("127.0.0.1", self.port)
        return container.waiting_for(_healthy())

    def _environment(self, service: dict[str, Any]) -> dict[str, str]:
        given = {key: str(value) for key, value in service.get("environment", {}).items()}
        if self.name == "kafka":
            given["KAFKA_ADVERTISED_LISTENERS"] = (
                f"INTERNAL://kafka:19092,CLIENT://127.0.0.1:{self.port}"
            )
        return {
            key: PASSWORD if "POSTGRES_PASSWORD" in value else value for key, value in given.items()
        }


@contextmanager
def servers() -> Iterator[dict[str, Callable[[], Server]]]:
    """Yield a maker for each server, by name, on one network; remove everything at the end."""
    created: list[ContainerServer] = []

    def keep(name: str) -> Callable[[], Server]:
        def make() -> Server:
            created.append(server := ContainerServer(name=name, network=network))
            return server

        return make

    with Network() as network:
        try:
            yield {name: keep(name) for name in PORTS}
        finally:
            for server in reversed(created):
                server.remove()


@cache
def image_of(name: str) -> str:
    """Return the image of a service; build it if it is ours, once: most of it is there already."""
    service = COMPOSE["services"][name]
    if "build" in service:
        build(name)
    return str(service["image"])


def _healthy() -> HealthcheckWaitStrategy:
    return HealthcheckWaitStrategy().with_startup_timeout(START_SECONDS)


def _healthcheck(compose: dict[str, Any]) -> dict[str, Any]:
    """Convert a health check of Compose to the engine's form, with nanoseconds."""
    return {
        "test": compose["test"],
        "retries": compose["retries"],
        **{key: _seconds(compose[key]) * 1_000_000_000 for key in ("interval", "timeout")},
    }


def _seconds(compose: str) -> int:
    """Return the seconds of a duration in Compose's form: whole seconds or minutes."""
    units = {"s": 1, "m": 60}
    return int(compose[:-1]) * units[compose[-1]]
