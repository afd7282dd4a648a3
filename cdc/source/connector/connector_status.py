"""Read what ``/connectors/{name}/status`` of Kafka Connect says of a connector and its tasks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cdc.source.connector.failure import cause


@dataclass(frozen=True, slots=True, kw_only=True)
class PartStatus:
    """Describes the state of the connector itself, or of one of its tasks."""

    state: str  # RUNNING, FAILED, PAUSED, ..
    trace: str = ""  # the Java stack trace of what ended it


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorStatus:
    """RUNNING is what the worker believes: whether events flow is told by the heartbeat alone."""

    connector: PartStatus
    tasks: tuple[PartStatus, ...]

    @property
    def parts(self) -> tuple[PartStatus, ...]:
        """Return the connector and its tasks."""
        return (self.connector, *self.tasks)

    @property
    def not_running(self) -> tuple[PartStatus, ...]:
        """Return the parts in any other state than RUNNING."""
        return tuple(part for part in self.parts if part.state != "RUNNING")

    @property
    def running(self) -> bool:
        """Return whether there is a task, and every part runs."""
        return bool(self.tasks) and not self.not_running

    @property
    def failed_part(self) -> PartStatus | None:
        """Return the first part that failed, if any did."""
        return next((part for part in self.parts if part.state == "FAILED"), None)

    @property
    def failed(self) -> bool:
        """Return whether any part failed."""
        return self.failed_part is not None

    @property
    def failure(self) -> str:
        """Return what may be shown of what ended it; empty while it runs."""
        return next((cause(part.trace) for part in self.parts if part.trace), "")


def connector_status(answer: Mapping[str, Any]) -> ConnectorStatus:
    """Return the status in a worker's answer. Raises KeyError for one that is none."""
    return ConnectorStatus(
        connector=_part(answer["connector"]), tasks=tuple(map(_part, answer["tasks"]))
    )


def _part(answer: Mapping[str, Any]) -> PartStatus:
    return PartStatus(state=str(answer["state"]), trace=str(answer.get("trace") or ""))
