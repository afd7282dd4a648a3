"""Finds and stops the processes that a killed wal2lake left behind."""

import os
import signal

import psutil

from cdc.stack.process.process import STATE_VARIABLE, ProcessIdentity, descendants, kill
from cdc.state.directory import StateDir

_PATIENCE_SECONDS = 20


def leftovers(state: StateDir) -> list[psutil.Process]:
    """Return our processes of this state directory, whoever their parent is now.

    This process and its parents are left out.
    """
    ours = {process.pid: process for process in _recorded(state)}
    ours |= {process.pid: process for process in psutil.process_iter() if _marked(process, state)}
    for process in list(ours.values()):
        ours |= {child.pid: child for child in descendants(process.pid)}
    excluded = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    return [process for pid, process in ours.items() if pid not in excluded]


def _recorded(state: StateDir) -> list[psutil.Process]:
    """Find processes by their records: some hide their environment, as Postgres does."""
    records = (path for path in state.run.glob("*.json") if path.name != "ports.json")
    identities = (ProcessIdentity.read(path) for path in records)
    return [alive for identity in identities if identity and (alive := identity.process())]


def _marked(process: psutil.Process, state: StateDir) -> bool:
    """Return whether the process inherited our variable; another user's processes are not ours."""
    try:
        alive = process.status() != psutil.STATUS_ZOMBIE
        return alive and process.environ().get(STATE_VARIABLE) == str(state.root)
    except (psutil.Error, OSError):
        return False


def clean(state: StateDir) -> list[str]:
    """Stop all leftovers and return their names; kill those still there after 20 seconds.

    Also deletes their records and the file of endpoints.
    """
    processes = leftovers(state)
    names = [_ask_to_stop(process) for process in processes]
    _, stubborn = psutil.wait_procs(processes, timeout=_PATIENCE_SECONDS)
    kill(stubborn)
    for path in (*state.run.glob("*.json"), state.endpoints_file):
        if path.name != "ports.json":
            path.unlink(missing_ok=True)
    return [name for name in names if name]


def _ask_to_stop(process: psutil.Process) -> str | None:
    try:
        name = process.name()
        # On SIGTERM Postgres would wait for its clients.
        process.send_signal(signal.SIGINT if name == "postgres" else signal.SIGTERM)
    except psutil.NoSuchProcess:
        return None
    return name
