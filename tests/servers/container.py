"""The servers as containers: image, environment and command of docker-compose.yml, so one pin each.

What differs from the deployed stack is only where they listen: on a port of the loopback chosen
free beforehand, because Kafka has to advertise it before it starts.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import docker
import yaml
from docker.errors import DockerException
from testcontainers.core.container import DockerContainer
from testcontainers.core.image import DockerImage
from testcontainers.core.network import Network
from testcontainers.core.wait_strategies import HealthcheckWaitStrategy

from tests.servers.server import Server

ROOT = Path(__file__).resolve().parent.parent.parent
COMPOSE: Final[dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
PORTS: Final = {"postgres": 5432, "kafka": 9092, "registry": 8080, "connect": 8083}
PASSWORD: Final = "only-for-tests"
WORKER: Final = {
    # Inside the network the servers have their names of docker-compose.yml.
    "source_url": "postgresql://postgres@postgres:5432/app",
    "source_password": "${env:POSTGRES_PASSWORD}",
    "registry_url": "http://registry:8080",
}


def why_not() -> str | None:
    """Why no container can run here; None where an engine answers."""
    try:
        docker.from_env(timeout=5).ping()
    except DockerException as error:
        return f"no Docker engine: {type(error).__name__}"
    return None


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass(kw_only=True)
class ContainerServer:
    """One service of docker-compose.yml; see ``Server`` for what its methods promise."""

    name: str
    network: Network
    port: int = field(default_factory=free_port)
    container: DockerContainer | None = None

    def start(self) -> str:
        if self.container is None:
            self.container = self._create().start()
        else:
            wrapped = self.container.get_wrapped_container()
            wrapped.start()
            HealthcheckWaitStrategy().wait_until_ready(self.container)
        return self.address

    def stop(self) -> None:
        if self.container is not None:
            self.container.get_wrapped_container().stop()

    def kill(self) -> None:
        if self.container is not None:
            wrapped = self.container.get_wrapped_container()
            wrapped.reload()
            if wrapped.status == "running":
                wrapped.kill()

    def remove(self) -> None:
        if self.container is not None:
            self.container.stop()

    @property
    def address(self) -> str:
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
        # The engine takes an address beside the port, which with_bind_ports has no word for.
        ports = cast("dict[str, Any]", container.ports)
        ports[str(PORTS[self.name])] = ("127.0.0.1", self.port)
        return container.waiting_for(HealthcheckWaitStrategy().with_startup_timeout(180))

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
    """How to make each server, by name, on one network; all of it is removed at the end."""
    made: list[ContainerServer] = []

    def keep(name: str) -> Callable[[], Server]:
        def make() -> Server:
            made.append(server := ContainerServer(name=name, network=network))
            return server

        return make

    with Network() as network:
        try:
            yield {name: keep(name) for name in PORTS}
        finally:
            for server in reversed(made):
                server.remove()


def image_of(name: str) -> str:
    """The image of a service; one that is ours is built, once, from its Dockerfile."""
    service = COMPOSE["services"][name]
    if "build" not in service:
        return str(service["image"])
    build = service["build"]
    image = DockerImage(
        path=str(ROOT / build["context"]), dockerfile_path=build["dockerfile"], tag=service["image"]
    )
    image.build()
    return str(image)


def _healthcheck(compose: dict[str, Any]) -> dict[str, Any]:
    """Compose's notation of a health check in the engine's own: durations in nanoseconds."""
    seconds = {key: int(str(compose[key]).removesuffix("s")) for key in ("interval", "timeout")}
    return {
        "test": compose["test"],
        "retries": compose["retries"],
        **{key: value * 1_000_000_000 for key, value in seconds.items()},
    }
