"""Finding and ending what a killed wal2lake left behind."""

import os
import signal

import psutil

from cdc.stack.process.process import STATE_VARIABLE, Identity, descendants, kill
from cdc.state.directory import StateDir

_PATIENCE_SECONDS = 20


def leftovers(state: StateDir) -> list[psutil.Process]:
    """Our processes of this state directory, whoever their parent is now, without ourselves."""
    found = {process.pid: process for process in _recorded(state)}
    found |= {process.pid: process for process in psutil.process_iter() if _marked(process, state)}
    for process in list(found.values()):
        found |= {child.pid: child for child in descendants(process.pid)}
    ourselves = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    return [process for pid, process in found.items() if pid not in ourselves]


def _recorded(state: StateDir) -> list[psutil.Process]:
    """By their records: a process may hide its environment, as Postgres does."""
    records = (path for path in state.run.glob("*.json") if path.name != "ports.json")
    identities = (Identity.read(path) for path in records)
    return [found for identity in identities if identity and (found := identity.process())]


def _marked(process: psutil.Process, state: StateDir) -> bool:
    """By the variable that all we start inherit; another user's processes are not ours."""
    try:
        alive = process.status() != psutil.STATUS_ZOMBIE
        return alive and process.environ().get(STATE_VARIABLE) == str(state.root)
    except (psutil.Error, OSError):
        return False


def clean(state: StateDir) -> list[str]:
    """End all leftovers, politely first; returns the names of the processes that were ended."""
    processes = leftovers(state)
    names = [_ask(process) for process in processes]
    _, stubborn = psutil.wait_procs(processes, timeout=_PATIENCE_SECONDS)
    kill(stubborn)
    for path in (*state.run.glob("*.json"), state.endpoints_file):
        if path.name != "ports.json":
            path.unlink(missing_ok=True)
    return [name for name in names if name]


def _ask(process: psutil.Process) -> str | None:
    try:
        name = process.name()
        # TERM would let Postgres wait for its clients
        process.send_signal(signal.SIGINT if name == "postgres" else signal.SIGTERM)
    except psutil.NoSuchProcess:
        return None
    return name
