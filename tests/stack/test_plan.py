"""Servers that the configuration replaces are not started."""

from typing import Any

import pytest

from cdc.config import Config
from cdc.stack.artifacts.lock_file import every_set
from cdc.stack.servers import server_plan
from cdc.stack.servers.registry import RegistryServer
from cdc.state.directory import StateDir

POSTGRES = {"source": {"tables": ["a.b"], "url": "postgresql://u@h/d"}}
KAFKA = {"kafka": {"bootstrap_servers": "broker:9092"}}
CONNECT = {"connect": {"url": "http://worker:8083"}}
REGISTRY = {"registry": {"url": "http://registry:8080"}}


def with_keys(config: Config, *changes: dict[str, Any]) -> Config:
    merged = config.model_dump()
    for change in changes:
        merged |= change
    return Config.model_validate(merged)


@pytest.mark.parametrize(
    ("changes", "started"),
    [
        ([], ["kafka", "postgres", "registry", "connect"]),
        ([POSTGRES], ["kafka", "registry", "connect"]),
        ([KAFKA], ["postgres", "registry", "connect"]),
        ([CONNECT, REGISTRY], ["kafka", "postgres"]),
        ([POSTGRES, KAFKA, CONNECT, REGISTRY], []),
    ],
)
def test_servers_without_an_address_are_embedded_in_this_order(
    config: Config, state: StateDir, changes: list[dict[str, Any]], started: list[str]
) -> None:
    made = server_plan.make(with_keys(config, *changes), state)
    assert [server.name for server in made.servers] == started


def test_the_registry_is_ready_before_the_worker_starts(config: Config, state: StateDir) -> None:
    """A connector that the worker remembers starts at once, and fails without the registry."""
    waves = [{server.name for server in wave} for wave in server_plan.make(config, state).waves]
    assert waves == [{"postgres", "kafka"}, {"registry"}, {"connect"}]


def test_embedded_clients_use_the_configured_broker(config: Config, state: StateDir) -> None:
    made = server_plan.make(with_keys(config, KAFKA), state)
    assert made.endpoints.kafka.bootstrap == "broker:9092"
    (registry,), (connect,) = made.waves[1:]
    assert isinstance(registry, RegistryServer)
    assert registry.properties()["apicurio.kafkasql.bootstrap.servers"] == "broker:9092"
    connect.prepare()
    written = (state.secrets / "connect.properties").read_text()
    assert "bootstrap.servers=broker:9092\n" in written


def test_only_servers_that_are_started_are_downloaded(config: Config) -> None:
    everything = with_keys(config, POSTGRES, KAFKA, CONNECT, REGISTRY)
    assert server_plan.needed_sets(everything) == ("spark",)
    own_broker = server_plan.needed_sets(with_keys(config, KAFKA))
    assert "kafka" not in own_broker
    assert "connect" in own_broker
    assert set(server_plan.needed_sets(config)) == set(every_set())
