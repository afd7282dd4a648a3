"""Write and read the supervisor's report, ``stack.json``, for ``up --detach`` and ``status``."""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.stack.process.process import ProcessIdentity
from cdc.stack.process.reserve import write_with_reserve
from cdc.state.directory import StateDir, read_json

STARTING = "starting"
READY = "ready"
STOPPING = "stopping"
FAILED = "failed"

_KEPT_EVENTS = 50


@dataclass(slots=True, kw_only=True)
class Member:
    """Describes a supervised process as the report shows it."""

    pid: int | None
    state: str  # starting, running, waiting (for its restart), failed
    restarts: int = 0
    reason: str = ""


@dataclass(slots=True, kw_only=True)
class StackReport:
    """Keeps the report of a running supervisor, and rewrites it atomically at every change."""

    state: StateDir
    supervisor: ProcessIdentity
    phase: str = STARTING
    members: dict[str, Member] = field(default_factory=dict)
    events: list[dict[str, str]] = field(default_factory=list)
    error: dict[str, str] | None = None
    connector: dict[str, str] | None = None  # the last message about it, and when

    def enter(self, phase: str) -> None:
        """Record the phase: STARTING, READY, STOPPING or FAILED."""
        self.phase = phase
        self.write()

    def event(self, what: str) -> None:
        """Append an event; only the last 50 are kept."""
        self.events.append({"at": datetime.now(UTC).isoformat(timespec="seconds"), "what": what})
        del self.events[:-_KEPT_EVENTS]
        self.write()

    def note_connector(self, what: str) -> None:
        """Note that the connector was restarted, and why; the next write records it."""
        self.connector = {"at": datetime.now(UTC).isoformat(), "what": what}

    def fail(self, error: CdcError) -> None:
        """Record the error that ends the supervisor, and enter FAILED."""
        self.error = {
            "kind": error.kind.value,
            "message": error.message,
            "detail": error.detail,
            "remedy": error.remedy,
            "reason": error.reason.value if error.reason else "",
        }
        self.enter(FAILED)

    def write(self) -> None:
        """Replace the file; a full disk is tolerated."""
        values = {
            "supervisor": asdict(self.supervisor),
            "phase": self.phase,
            "processes": {name: asdict(member) for name, member in self.members.items()},
            "events": self.events,
            "error": self.error,
            "connector": self.connector,
        }
        # A full disk must not end the supervision of servers that can survive it.
        with suppress(OSError):
            text = json.dumps(values, indent=2)
            write_with_reserve(self.state.stack_file, text, self.state.reserve_file)


def read(state: StateDir) -> dict[str, Any]:
    """Return the last report, whose supervisor may be gone; empty if there is none."""
    return read_json(state.stack_file) or {}


def supervisor(state: StateDir) -> ProcessIdentity | None:
    """Return the supervisor of the last report, or None if it no longer runs."""
    record = read(state).get("supervisor")
    identity = (
        ProcessIdentity(pid=record["pid"], create_time=record["create_time"]) if record else None
    )
    return identity if identity and identity.process() else None


def connector_note(state: StateDir, seconds: float) -> str:
    """Return the last message about the connector, or "" if it is older than ``seconds``."""
    note = read(state).get("connector")
    if not note:
        return ""
    age = datetime.now(UTC) - datetime.fromisoformat(note["at"])
    return str(note["what"]) if age.total_seconds() <= seconds else ""


def reported_error(state: StateDir) -> CdcError | None:
    """Return the error that ended the last supervisor, or None if there was none."""
    facts = read(state).get("error")
    if not facts:
        return None
    return CdcError(
        ErrorKind(facts["kind"]),
        facts["message"],
        detail=facts["detail"],
        remedy=facts["remedy"],
        reason=Reason(facts["reason"]) if facts.get("reason") else None,
    )
