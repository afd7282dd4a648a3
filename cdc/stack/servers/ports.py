"""Chooses ports for the embedded servers: the configured, else the last used, else a free one."""

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
"""Below the range of outgoing connections, so that a restarted server finds its port free."""

_ATTEMPTS = 200


def choose(state: StateDir, fixed: Mapping[str, int]) -> dict[str, int]:
    """Choose a port for every name and record the choice.

    Raises CONFIG for an unknown name in ``fixed`` and CONFLICT if a configured port is in use.
    """
    if unknown := sorted(set(fixed) - set(NAMES)):
        raise CdcError(
            ErrorKind.CONFIG,
            f"stack.ports: unknown server {unknown[0]!r}",
            remedy=f"use one of {', '.join(NAMES)}",
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
    """Return whether a server could bind the port on the loopback address now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def require_free(name: str, port: int) -> None:
    """Raise CONFLICT if the port is in use, naming its holder where the system reveals it."""
    if is_free(port):
        return
    raise CdcError(
        ErrorKind.CONFLICT,
        f"port {port} of {name} is already in use",
        detail=_holder(port),
        remedy=f"stop that process, or choose another port with stack.ports.{name}",
    )


def _holder(port: int) -> str:
    try:
        connections = psutil.net_connections(kind="tcp")
    except psutil.AccessDenied:
        return ""
    for connection in connections:
        listens = connection.status == psutil.CONN_LISTEN
        if listens and port in connection.laddr and connection.pid:
            return f"used by process {connection.pid} ({_name(connection.pid)})"
    return ""


def _name(pid: int) -> str:
    try:
        return psutil.Process(pid).name()
    except psutil.NoSuchProcess:
        return "already gone"
