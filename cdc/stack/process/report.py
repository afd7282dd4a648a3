"""What the supervisor says of itself in ``stack.json``, for ``up --detach`` and ``status``."""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.stack.process.process import Identity
from cdc.stack.process.reserve import write_with_reserve
from cdc.state.directory import StateDir, read_json

STARTING = "starting"
READY = "ready"
STOPPING = "stopping"
FAILED = "failed"

_KEPT_EVENTS = 50


@dataclass(slots=True, kw_only=True)
class Member:
    """A supervised process as a reader sees it."""

    pid: int | None
    state: str  # starting, running, waiting (for its restart), failed
    restarts: int = 0
    reason: str = ""


@dataclass(slots=True, kw_only=True)
class Report:
    """Written whole at every change, by rename."""

    state: StateDir
    supervisor: Identity
    phase: str = STARTING
    members: dict[str, Member] = field(default_factory=dict)
    events: list[dict[str, str]] = field(default_factory=list)
    error: dict[str, str] | None = None
    connector: dict[str, str] | None = None  # what was said of it last, and when

    def enter(self, phase: str) -> None:
        self.phase = phase
        self.write()

    def event(self, what: str) -> None:
        self.events.append({"at": datetime.now(UTC).isoformat(timespec="seconds"), "what": what})
        del self.events[:-_KEPT_EVENTS]
        self.write()

    def said_of_connector(self, what: str) -> None:
        """That it was restarted, and why."""
        self.connector = {"at": datetime.now(UTC).isoformat(), "what": what}

    def fail(self, error: CdcError) -> None:
        self.error = {
            "kind": error.kind.value,
            "message": error.message,
            "detail": error.detail,
            "remedy": error.remedy,
            "reason": error.reason.value if error.reason else "",
        }
        self.enter(FAILED)

    def write(self) -> None:
        values = {
            "supervisor": asdict(self.supervisor),
            "phase": self.phase,
            "processes": {name: asdict(member) for name, member in self.members.items()},
            "events": self.events,
            "error": self.error,
            "connector": self.connector,
        }
        # A full disk must not end the supervision of servers that may survive it.
        with suppress(OSError):
            text = json.dumps(values, indent=2)
            write_with_reserve(self.state.stack_file, text, self.state.reserve_file)


def read(state: StateDir) -> dict[str, Any]:
    """The last report, empty when there is none; of a supervisor that may be gone."""
    return read_json(state.stack_file) or {}


def supervisor(state: StateDir) -> Identity | None:
    """The supervisor of the last report if it still runs."""
    said = read(state).get("supervisor")
    identity = Identity(pid=said["pid"], create_time=said["create_time"]) if said else None
    return identity if identity and identity.process() else None


def last_of_connector(state: StateDir, seconds: float) -> str:
    """What was said of the connector no longer ago than that; nothing else."""
    said = read(state).get("connector")
    if not said:
        return ""
    ago = datetime.now(UTC) - datetime.fromisoformat(said["at"])
    return str(said["what"]) if ago.total_seconds() <= seconds else ""


def reported_error(state: StateDir) -> CdcError | None:
    said = read(state).get("error")
    if not said:
        return None
    return CdcError(
        ErrorKind(said["kind"]),
        said["message"],
        detail=said["detail"],
        remedy=said["remedy"],
        reason=Reason(said["reason"]) if said.get("reason") else None,
    )
