"""Disturb running parts: kill them, or suspend them for a while as a debugger or a hang would."""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from tests.faults.bank.armed import Armed
from tests.servers.process import ProcessServer
from tests.stopped import stopped

PROCESSES: Final = ("job", "connect", "kafka", "registry")
STOPPED_SECONDS: Final = 15.0
"""Longer than the session of a consumer or a worker, so that others think it is gone."""
Disturb = Callable[[Armed], None]
"""A disturbance; it returns when it is done, before the pipeline has recovered."""


@contextmanager
def frozen(bank: Armed, name: str) -> Iterator[None]:
    """Suspend a process of the installation for the block."""
    with stopped(bank.pid(name)):
        yield


def nothing(_bank: Armed) -> None:
    """Do nothing: the control case."""


def _killed(name: str, bank: Armed) -> None:
    bank.crash(name)


def _stopped_for_a_while(name: str, bank: Armed) -> None:
    with frozen(bank, name):
        threading.Event().wait(STOPPED_SECONDS)  # the length of the hang; nothing to await


def _postgres_stops_at_once(bank: Armed) -> None:
    server = bank.servers["postgres"]
    assert isinstance(server, ProcessServer), "needs a Postgres process on this machine"
    server.abort()
    server.start()


def _walsender_ends(bank: Armed) -> None:
    bank.execute(
        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots "
        "WHERE slot_name = 'wal2lake' AND active_pid IS NOT NULL"
    )


DISTURBANCES: Final[dict[str, Disturb]] = {
    **{f"kill {name}": partial(_killed, name) for name in (*PROCESSES, "postgres")},
    **{f"stop {name}": partial(_stopped_for_a_while, name) for name in PROCESSES},
    "abort postgres": _postgres_stops_at_once,
    "end the walsender": _walsender_ends,
}
KILLS: Final = tuple(name for name in DISTURBANCES if name.startswith(("kill ", "abort ")))
"""The disturbances that end a running process."""
_MOSTLY: Final = (*sorted(DISTURBANCES), *KILLS, *KILLS)


def is_possible(bank: Armed, name: str) -> bool:
    """Return whether the disturbance's process is up, so that it can be killed or suspended."""
    part = name.rpartition(" ")[2]
    return part not in PROCESSES or bank.process(part) is not None


def drawn(seed: int, kills: int, quiet_seconds: float) -> Iterator[tuple[float, str]]:
    """Yield random (seconds to wait, disturbance) until ``kills`` kills are drawn; most are."""
    chance, left = random.Random(seed), kills
    while left:
        pause, name = chance.uniform(0, quiet_seconds), chance.choice(_MOSTLY)
        left -= name in KILLS
        yield pause, name
