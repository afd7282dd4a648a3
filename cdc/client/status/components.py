"""Ask each component of the pipeline, except the lake, for its state."""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import httpx
import psutil

from cdc import http_client
from cdc.errors import CdcError, ErrorKind
from cdc.kafka import registry_client
from cdc.source.connector.connector_status import ConnectorStatus, connector_status
from cdc.source.connector.failure import cause
from cdc.source.connector.worker_rest import refuse_unknown
from cdc.source.server.connection import connect, translated
from cdc.source.server.slot import slot_state
from cdc.stack.artifacts.prerequisites import check_disk
from cdc.stack.process import stack_report
from cdc.state import job_state
from cdc.state.directory import StateDir
from cdc.state.job_state import JobState

CONNECT_SECONDS: Final = 5.0
SOURCE_SECONDS: Final = 10.0
PID_SLACK_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePart:
    """Describes Postgres and the pipeline's replication slot."""

    current_lsn: int
    slot_active: bool
    reader: str  # the application name of the session that reads the slot
    wal_status: str | None  # None: the slot does not exist
    retained_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorPart:
    """Gives the state of the connector and its tasks as Kafka Connect reports it."""

    state: str  # RUNNING, FAILED, PAUSED, ...; missing if Connect has no such connector
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPart:
    """Describes the job as its state file does, and says whether its process is alive."""

    state: str  # starting, applying, stopped; unknown if it has never run here
    pid: int | None
    alive: bool
    alarm: str = ""  # what keeps it from publishing cuts


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPart:
    """Describes a process of the embedded stack as its supervisor reports it."""

    name: str
    state: str
    pid: int | None
    restarts: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpPart:
    """Describes ``wal2lake up`` as its report does, and gives the error if it failed."""

    phase: str  # starting, ready, stopping, failed; gone: its process died without reporting it
    doing: str = ""  # its last event
    kind: str = ""
    error: str = ""
    remedy: str = ""


def source(url: str, slot: str) -> SourcePart:
    """Return the source's position and the state of the slot.

    Raises UNREACHABLE or SOURCE_NOT_READY.
    """
    with connect(url, answer_seconds=SOURCE_SECONDS) as connection:
        state = slot_state(connection, slot)
        with translated("reading the source's position"):
            row = connection.execute(
                "SELECT (pg_current_wal_lsn() - '0/0'::pg_lsn)::bigint"
            ).fetchone()
    return SourcePart(
        current_lsn=int(row[0]) if row else 0,
        slot_active=state is not None and state.active_pid is not None,
        reader=state.application if state else "",
        wal_status=state.wal_status if state else None,
        retained_bytes=state.retained_bytes if state else None,
    )


def connector(connect_url: str, name: str) -> ConnectorPart:
    """Return the state of the connector.

    Raises UNREACHABLE when no worker answers, CONFIG when the worker rejects our credentials.
    """
    try:
        response = http_client.get(
            connect_url, f"/connectors/{name}/status", timeout=CONNECT_SECONDS
        )
        refuse_unknown(response, connect_url)
        if response.status_code == httpx.codes.NOT_FOUND:
            return ConnectorPart(state="missing")
        response.raise_for_status()
        return _worst(connector_status(response.json()))
    except (httpx.HTTPError, json.JSONDecodeError) as error:
        raise CdcError(
            ErrorKind.UNREACHABLE,
            f"no Connect worker answers at {http_client.without_login(connect_url)}",
            detail=str(error).split("\n", maxsplit=1)[0],
            remedy="wal2lake up, or correct connect.url",
        ) from None


def _worst(status: ConnectorStatus) -> ConnectorPart:
    """Return the worst state of connector and tasks: a failed task counts as a failed connector."""
    not_running = status.not_running
    if not status.tasks:
        return ConnectorPart(state=not_running[0].state if not_running else "UNASSIGNED")
    if not not_running:
        return ConnectorPart(state="RUNNING")
    part = status.failed_part or not_running[0]
    return ConnectorPart(state=part.state, reason=cause(part.trace))


def registry(url: str) -> None:
    """Check that the schema registry is ready.

    Raises UNREACHABLE when it is not, CONFIG when it rejects our credentials.
    """
    try:
        answer = http_client.get(url, "/health/ready", timeout=CONNECT_SECONDS)
        registry_client.refuse_unknown(answer, url)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        raise CdcError(
            ErrorKind.UNREACHABLE,
            f"no schema registry is ready at {http_client.without_login(url)}",
            detail=type(error).__name__,
            remedy="wal2lake up, or correct registry.url",
        ) from None


def job(state_dir: Path) -> JobPart:
    """Return the state of the job from its state file; it is unknown without a readable file."""
    try:
        file = JobState(**json.loads(job_state.path(state_dir).read_text()))
    except (OSError, ValueError, TypeError):
        return JobPart(state="unknown", pid=None, alive=False)
    alive = _is_alive(file)
    return JobPart(state=file.state, pid=file.pid, alive=alive, alarm=file.alarm if alive else "")


def _is_alive(file: JobState) -> bool:
    """Return whether the pid still is the job's: a process that reuses the pid started later."""
    try:
        began = psutil.Process(file.pid).create_time()
    except psutil.NoSuchProcess:
        return False
    started = datetime.fromisoformat(file.started_at).timestamp()
    return file.state != "stopped" and began < started + PID_SLACK_SECONDS


def disk(place: Path) -> str:
    """Return a message if the disk has too little free space, else an empty string."""
    try:
        check_disk(place)
    except CdcError as error:
        return error.message
    return ""


def up(state_dir: Path) -> UpPart | None:
    """Return the state of ``wal2lake up``; None if it has never run here, or has been stopped."""
    state = StateDir(state_dir)
    reported = stack_report.read(state)
    if not reported or reported["phase"] == stack_report.STOPPING:
        return None
    alive = stack_report.supervisor(state) is not None
    error = stack_report.reported_error(state)
    events = reported.get("events") or [{"what": ""}]
    return UpPart(
        phase=reported["phase"] if alive or error else "gone",
        doing=events[-1]["what"],
        kind=error.kind.value if error else "",
        error=": ".join(filter(None, (error.coded, error.detail))) if error else "",
        remedy=error.remedy if error else "",
    )


def servers(state_dir: Path) -> list[ServerPart]:
    """Return the embedded processes; their state is ``gone`` when their supervisor is."""
    state = StateDir(state_dir)
    members: dict[str, dict[str, Any]] = stack_report.read(state).get("processes", {})
    supervised = stack_report.supervisor(state) is not None
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
