"""A pipeline as its commands and its job see it: its configuration and its addresses."""

from dataclasses import dataclass

from cdc.config import Config
from cdc.state.directory import StateDir, read_json
from cdc.state.endpoints import Endpoints, combine


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One pipeline: its configuration, and the addresses of its parts."""

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
