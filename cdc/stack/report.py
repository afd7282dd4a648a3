"""What the supervisor says of itself in ``stack.json``, for ``up --detach`` and ``status``."""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.stack.process import Identity
from cdc.stack.reserve import write_with_reserve
from cdc.stack.state import StateDir, read_json

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

    def enter(self, phase: str) -> None:
        self.phase = phase
        self.write()

    def event(self, what: str) -> None:
        self.events.append({"at": datetime.now(UTC).isoformat(timespec="seconds"), "what": what})
        del self.events[:-_KEPT_EVENTS]
        self.write()

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
