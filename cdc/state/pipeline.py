"""Define a pipeline as its commands and its job see it: its configuration and its addresses."""

import json
from dataclasses import dataclass

from cdc import http_client
from cdc.config import Config
from cdc.state.atomic_file import write_private
from cdc.state.directory import StateDir, read_json
from cdc.state.endpoints import Endpoints, combine


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Holds the configuration of one pipeline, and the addresses of its parts."""

    config: Config
    endpoints: Endpoints

    @property
    def name(self) -> str:
        """Return the configured name, which the slot and the connector have too."""
        return self.config.name


def resolve(config: Config) -> Pipeline:
    """Return the pipeline at the configured addresses, completed by those that ``up`` recorded.

    Raises UNREACHABLE if an address is in neither.
    """
    recorded = read_json(StateDir(config.state_dir).endpoints_file) or {}
    embedded = {str(key): str(value) for key, value in recorded.items()}
    return Pipeline(config, combine(config, embedded))


def record(state: StateDir, pipeline: Pipeline) -> None:
    """Write the addresses to ``endpoints.json``, for ``resolve``.

    Of one's own servers the secrets are left out: the configuration has them.
    """
    config, endpoints = pipeline.config, pipeline.endpoints
    source, connect = endpoints.source_url, endpoints.connect
    values = {
        "source_url": http_client.without_login(source) if config.source.url else source,
        "kafka": endpoints.kafka.bootstrap,
        "connect": http_client.without_login(connect) if config.connect.url else connect,
        "registry": http_client.without_login(endpoints.registry),
    }
    write_private(state.endpoints_file, json.dumps(values, indent=2))
