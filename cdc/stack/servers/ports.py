"""Ports for the embedded servers: configured, or as last time, or free."""

import json
import random
import socket
from collections.abc import Mapping

import psutil

from cdc.errors import CdcError, ErrorKind
from cdc.stack.servers.server import LOOPBACK
from cdc.state.atomic_file import write_private
from cdc.state.directory import StateDir, read_json

NAMES = ("postgres", "kafka", "controller", "registry", "connect")

_CANDIDATES = range(20_000, 30_000)
"""Below the range from which outgoing connections get theirs: a restarted server finds its port."""

_ATTEMPTS = 200


def choose(state: StateDir, fixed: Mapping[str, int]) -> dict[str, int]:
    """A port for every name, recorded; raises CONFLICT when a configured one is taken."""
    if unknown := sorted(set(fixed) - set(NAMES)):
        raise CdcError(
            ErrorKind.CONFIG,
            f"stack.ports: there is no server {unknown[0]!r}",
            remedy=f"the names are {', '.join(NAMES)}",
        )
    record = state.run / "ports.json"
    earlier = read_json(record) or {}
    chosen: dict[str, int] = {}
    for name in NAMES:
        chosen[name] = _choose(name, fixed.get(name), earlier.get(name), set(chosen.values()))
    write_private(record, json.dumps(chosen))
    return chosen


def _choose(name: str, fixed: int | None, earlier: int | None, used: set[int]) -> int:
    if fixed is not None:
        require_free(name, fixed)
        return fixed
    if earlier is not None and earlier not in used and is_free(earlier):
        return earlier
    for candidate in random.sample(_CANDIDATES, _ATTEMPTS):
        if candidate not in used and is_free(candidate):
            return candidate
    raise CdcError(ErrorKind.CONFLICT, f"no free port found for {name}")


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def require_free(name: str, port: int) -> None:
    """Raises CONFLICT naming the port and, where the system tells, who holds it."""
    if is_free(port):
        return
    raise CdcError(
        ErrorKind.CONFLICT,
        f"port {port} of {name} is taken",
        detail=_holder(port),
        remedy=f"stop that process, or choose another with stack.ports.{name}",
    )


def _holder(port: int) -> str:
    try:
        connections = psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:
        return ""
    for connection in connections:
        listens = connection.status == psutil.CONN_LISTEN
        if listens and port in connection.laddr and connection.pid:
            return f"by process {connection.pid} ({_name(connection.pid)})"
    return ""


def _name(pid: int) -> str:
    try:
        return psutil.Process(pid).name()
    except psutil.NoSuchProcess:
        return "gone by now"
