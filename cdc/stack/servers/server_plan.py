"""Decides which servers are embedded, where they listen, and in which order they start."""

from dataclasses import dataclass

from cdc.config import Config
from cdc.stack.artifacts.lock_file import (
    CONNECT,
    CONVERTER,
    DEBEZIUM,
    KAFKA,
    OBJECTS,
    REGISTRY,
    SPARK,
    postgres_set,
)
from cdc.stack.servers import ports
from cdc.stack.servers.connect import ConnectServer
from cdc.stack.servers.kafka import KafkaServer
from cdc.stack.servers.postgres import PostgresServer
from cdc.stack.servers.registry import RegistryServer
from cdc.stack.servers.server import Server
from cdc.state.directory import StateDir
from cdc.state.endpoints import Endpoints, combine, configured_broker


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPlan:
    """Lists the embedded servers in waves; the servers of one wave do not depend on each other.

    The registry must be ready before the Connect worker starts: a connector that the worker
    remembers starts at once, and its task fails for good if the registry does not answer.
    """

    waves: tuple[tuple[Server, ...], ...]
    endpoints: Endpoints

    @property
    def servers(self) -> tuple[Server, ...]:
        """Return all servers in the order of their start."""
        return tuple(server for wave in self.waves for server in wave)


def make(config: Config, state: StateDir) -> ServerPlan:
    """Plan every server that no configured address replaces.

    Chooses and records their ports; raises CONFLICT if a configured port is taken.
    """
    chosen = ports.choose(state, config.stack.ports)
    postgres = PostgresServer(state, chosen["postgres"])
    kafka = KafkaServer(state, chosen["kafka"], chosen["controller"])
    broker = configured_broker(config.kafka) or kafka.broker
    copies = config.kafka.replication_factor
    registry = RegistryServer(state, chosen["registry"], broker, config.name, copies)
    connect = ConnectServer(state, chosen["connect"], broker, config.name, copies)
    endpoints = combine(
        config,
        {
            "source_url": postgres.url,
            "kafka": kafka.broker.bootstrap,
            "connect": connect.url,
            "registry": registry.url,
        },
    )
    # Others wait for Kafka, and Postgres' first start prepares for seconds: so Kafka comes first.
    stores: tuple[Server, ...] = (kafka, postgres)
    replaced = replaced_names(config)
    waves = tuple(
        tuple(server for server in wave if server.name not in replaced)
        for wave in (stores, (registry,), (connect,))
    )
    return ServerPlan(waves=waves, endpoints=endpoints)


def replaced_names(config: Config) -> set[str]:
    """Return the names of the servers for which the configuration has an address."""
    configured = {
        "postgres": config.source.url,
        "kafka": config.kafka.bootstrap_servers,
        "registry": config.registry.url,
        "connect": config.connect.url,
    }
    return {name for name, address in configured.items() if address}


def needed_sets(config: Config) -> tuple[str, ...]:
    """Return the artifact sets that this configuration needs; Spark's is always one of them."""
    replaced = replaced_names(config)
    needed = [SPARK]
    if "://" in config.lake.path:
        needed.append(OBJECTS)
    if "postgres" not in replaced:
        needed.append(postgres_set())
    if "kafka" not in replaced:
        needed.append(KAFKA)
    if "connect" not in replaced:
        needed += [CONNECT, CONVERTER, DEBEZIUM]
    if "registry" not in replaced:
        needed.append(REGISTRY)
    return tuple(needed)
