"""What is done to the running parts: killed, or stopped for a while as by a debugger or a hang."""

import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from typing import Final

import psutil

from tests.faults.armed import Armed

PROCESSES: Final = ("job", "connect", "kafka", "registry")
STOPPED_SECONDS: Final = 15.0
"""Longer than the session of a consumer or a worker: others think that it is gone."""
Disturb = Callable[[], None]


def disturbances(bank: Armed) -> dict[str, Disturb]:
    """By name; each returns when it is done, and not when all is well again."""
    killed = {f"kill {name}": partial(bank.crash, name) for name in (*PROCESSES, "postgres")}
    stopped = {f"stop {name}": partial(stopped_for_a_while, bank, name) for name in PROCESSES}
    return {**killed, **stopped, "end the walsender": partial(walsender_ends, bank)}


def stopped_for_a_while(bank: Armed, name: str) -> None:
    """SIGSTOP and SIGCONT to the process and all that it started."""
    root = psutil.Process(bank.pid(name))
    tree = [root.pid, *(child.pid for child in root.children(recursive=True))]
    for pid in tree:
        os.kill(pid, signal.SIGSTOP)
    try:
        threading.Event().wait(STOPPED_SECONDS)
    finally:
        for pid in tree:
            os.kill(pid, signal.SIGCONT)


def walsender_ends(bank: Armed) -> None:
    bank.execute(
        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots "
        "WHERE slot_name = 'wal2lake' AND active_pid IS NOT NULL"
    )
