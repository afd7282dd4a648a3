"""The parts of a pipeline besides the lake, each asked on its own, as far as it answers."""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import httpx
import psutil

from cdc import http_client
from cdc.errors import CdcError, ErrorKind
from cdc.source.connector.failure import cause
from cdc.source.connector.status import ConnectorStatus, connector_status
from cdc.source.connector.worker_rest import refuse_unknown
from cdc.source.server.connection import connect, translated
from cdc.source.server.slot import slot_state
from cdc.stack.artifacts.prerequisites import check_disk
from cdc.stack.process import report
from cdc.state import job_state
from cdc.state.directory import StateDir
from cdc.state.job_state import JobState

CONNECT_SECONDS: Final = 5.0
SOURCE_SECONDS: Final = 10.0
PID_SLACK_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePart:
    """Postgres and our slot in it."""

    current_lsn: int
    slot_active: bool
    reader: str  # the name that who reads the slot gave itself
    wal_status: str | None  # None: there is no slot
    retained_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorPart:
    """The connector and its task as Kafka Connect reports them."""

    state: str  # RUNNING, FAILED, PAUSED, ..; missing when Connect knows no such connector
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPart:
    """The job as it says of itself, and whether its process is there."""

    state: str  # starting, applying, stopped; unknown when it never ran here
    pid: int | None
    alive: bool
    alarm: str = ""  # what keeps it from publishing cuts


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPart:
    """A process of the embedded stack as its supervisor reports it."""

    name: str
    state: str
    pid: int | None
    restarts: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpPart:
    """``wal2lake up`` as it says of itself; what it ended with, where it failed."""

    phase: str  # starting, ready, stopping, failed; gone where it says another and is not there
    doing: str = ""  # what it said last
    kind: str = ""
    error: str = ""
    remedy: str = ""


def source(url: str, slot: str) -> SourcePart:
    """Raises UNREACHABLE or SOURCE_NOT_READY."""
    with connect(url, answer_seconds=SOURCE_SECONDS) as connection:
        found = slot_state(connection, slot)
        with translated("reading the source's position"):
            row = connection.execute(
                "SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint"
            ).fetchone()
    return SourcePart(
        current_lsn=int(row[0]) if row else 0,
        slot_active=found is not None and found.active_pid is not None,
        reader=found.application if found else "",
        wal_status=found.wal_status if found else None,
        retained_bytes=found.retained_bytes if found else None,
    )


def connector(connect_url: str, name: str) -> ConnectorPart:
    """Raises UNREACHABLE when no worker answers, CONFIG when one does not take who asks."""
    try:
        response = http_client.get(
            f"{connect_url}/connectors/{name}/status", timeout=CONNECT_SECONDS
        )
        refuse_unknown(response, connect_url)
        if response.status_code == httpx.codes.NOT_FOUND:
            return ConnectorPart(state="missing")
        response.raise_for_status()
        return _worst(connector_status(response.json()))
    except (httpx.HTTPError, json.JSONDecodeError) as error:
        raise CdcError(
            ErrorKind.UNREACHABLE,
            f"no Connect worker answers at {http_client.shown(connect_url)}",
            detail=str(error).split("\n", maxsplit=1)[0],
            remedy="wal2lake up, or correct connect.url",
        ) from None


def _worst(status: ConnectorStatus) -> ConnectorPart:
    """The worst of the connector and its tasks: one of them failed is a connector that failed."""
    unwell = status.not_running
    if not status.tasks:
        return ConnectorPart(state=unwell[0].state if unwell else "UNASSIGNED")
    if not unwell:
        return ConnectorPart(state="RUNNING")
    part = status.failed_part or unwell[0]
    return ConnectorPart(state=part.state, reason=cause(part.trace))


def registry(url: str) -> None:
    """Raises UNREACHABLE when none is ready."""
    ready = f"{url}/health/ready"
    try:
        http_client.get(ready, timeout=CONNECT_SECONDS).raise_for_status()
    except httpx.HTTPError as error:
        raise CdcError(
            ErrorKind.UNREACHABLE,
            f"no schema registry is ready at {url}",
            detail=type(error).__name__,
            remedy="wal2lake up, or correct registry.url",
        ) from None


def job(state_dir: Path) -> JobPart:
    try:
        said = JobState(**json.loads(job_state.path(state_dir).read_text()))
    except (OSError, ValueError, TypeError):
        return JobPart(state="unknown", pid=None, alive=False)
    alive = _is_alive(said)
    return JobPart(state=said.state, pid=said.pid, alive=alive, alarm=said.alarm if alive else "")


def _is_alive(said: JobState) -> bool:
    """Whether the pid is still that process: a later one that took the pid over began later."""
    try:
        began = psutil.Process(said.pid).create_time()
    except psutil.NoSuchProcess:
        return False
    started = datetime.fromisoformat(said.started_at).timestamp()
    return said.state != "stopped" and began < started + PID_SLACK_SECONDS


def disk(place: Path) -> str:
    """What is said of a disk with too little room; nothing of one with enough."""
    try:
        check_disk(place)
    except CdcError as error:
        return error.message
    return ""


def up(state_dir: Path) -> UpPart | None:
    """None where it never ran here, or came to its end."""
    state = StateDir(state_dir)
    said = report.read(state)
    if not said or said["phase"] == report.STOPPING:
        return None
    there = report.supervisor(state) is not None
    error = report.reported_error(state)
    events = said.get("events") or [{"what": ""}]
    return UpPart(
        phase=said["phase"] if there or error else "gone",
        doing=events[-1]["what"],
        kind=error.kind.value if error else "",
        error=": ".join(filter(None, (error.coded, error.detail))) if error else "",
        remedy=error.remedy if error else "",
    )


def servers(state_dir: Path) -> list[ServerPart]:
    """The embedded processes; ``gone`` when the supervisor that reported them is."""
    state = StateDir(state_dir)
    members: dict[str, dict[str, Any]] = report.read(state).get("processes", {})
    supervised = report.supervisor(state) is not None
    return [
        ServerPart(
            name=name,
            state=member["state"] if supervised else "gone",
            pid=member["pid"] if supervised else None,
            restarts=member["restarts"],
            reason=member["reason"],
        )
        for name, member in members.items()
    ]
