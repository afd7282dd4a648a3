"""Find the servers that a replay to a path needs, whether the pipeline runs or not."""

from dataclasses import dataclass

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.source.connector import worker_rest
from cdc.state.directory import StateDir, read_json
from cdc.state.endpoints import configured_broker, configured_http_url


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Names the servers that a replay needs: never the source, Connect only for the placeholder."""

    kafka: Broker | None
    registry: str
    connect: str | None

    @classmethod
    def of(cls, config: Config) -> "Addresses":
        """Return the configured addresses, else those of the servers that ``up`` started.

        Raises UNREACHABLE where the schema registry's address is unknown.
        """
        started = read_json(StateDir(config.state_dir).endpoints_file) or {}
        registry = configured_http_url("registry", config.registry) or started.get("registry")
        if not registry:
            raise unknown_address("the schema registry", "registry.url")
        return cls(
            kafka=configured_broker(config.kafka) or _started(started.get("kafka")),
            registry=registry,
            connect=configured_http_url("connect", config.connect) or started.get("connect"),
        )

    def placeholder(self, config: Config) -> str:
        """Return what the connector sends for a large value that did not change.

        It is never guessed: with a wrong one, placeholders would be applied as values. Raises
        CONFIG where neither the state directory nor the connector has it.
        """
        file = StateDir(config.state_dir).secrets / "placeholder"
        if file.exists():
            return file.read_text()
        connector = worker_rest.configuration(self.connect, config.name) if self.connect else None
        if connector and connector.get(worker_rest.PLACEHOLDER):
            return connector[worker_rest.PLACEHOLDER]
        raise CdcError(
            ErrorKind.CONFIG,
            "the placeholder of unchanged values is not known on this machine",
            remedy=f"copy the file secrets/{file.name} of the pipeline's state_dir to {file}",
        )


def _started(bootstrap: str | None) -> Broker | None:
    return Broker(bootstrap) if bootstrap else None


def unknown_address(server: str, key: str) -> CdcError:
    """Return the error about a server that a configuration key would have to name."""
    return CdcError(
        ErrorKind.UNREACHABLE, f"the address of {server} is not configured", remedy=f"set {key}"
    )
