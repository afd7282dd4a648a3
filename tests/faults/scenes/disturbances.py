"""What is done to the running parts: killed, or stopped for a while as by a debugger or a hang."""

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
"""Longer than the session of a consumer or a worker: others think that it is gone."""
Disturb = Callable[[Armed], None]
"""Returns when it is done, and not when all is well again."""


@contextmanager
def frozen(bank: Armed, name: str) -> Iterator[None]:
    with stopped(bank.pid(name)):
        yield


def nothing(_bank: Armed) -> None:
    """The control."""


def _killed(name: str, bank: Armed) -> None:
    bank.crash(name)


def _stopped_for_a_while(name: str, bank: Armed) -> None:
    with frozen(bank, name):
        threading.Event().wait(STOPPED_SECONDS)


def _postgres_stops_at_once(bank: Armed) -> None:
    server = bank.servers["postgres"]
    assert isinstance(server, ProcessServer), "it is this machine's"
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
"""Those that end a process as it runs."""
_MOSTLY: Final = (*sorted(DISTURBANCES), *KILLS, *KILLS)


def is_possible(bank: Armed, name: str) -> bool:
    """A process that is down can be neither killed nor stopped."""
    part = name.rpartition(" ")[2]
    return part not in PROCESSES or bank.process(part) is not None


def drawn(seed: int, kills: int, quiet_seconds: float) -> Iterator[tuple[float, str]]:
    """What is done, and the seconds before it, until so many of it were kills: most are."""
    chance, left = random.Random(seed), kills
    while left:
        pause, name = chance.uniform(0, quiet_seconds), chance.choice(_MOSTLY)
        left -= name in KILLS
        yield pause, name
