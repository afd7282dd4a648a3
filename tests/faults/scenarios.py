"""What happens around a running pipeline; each returns when it is over, not when all is well."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Final

import httpx

from cdc.stack.embedded import await_ready
from cdc.stack.endpoints import Endpoints
from cdc.stack.process import Process
from cdc.stack.servers.connect import Connect
from cdc.stack.state import StateDir, read_json
from tests.faults.armed import NAME, Armed
from tests.faults.disturbances import DISTURBANCES, Disturb, frozen
from tests.faults.scene import Scene
from tests.servers.container import free_port
from tests.small_disk import fill
from tests.waiting import until

SHORT_SECONDS: Final = 20.0
LONG_SECONDS: Final = 75.0
"""Longer than ``wal_sender_timeout``: Postgres gives a silent reader up."""
SLOW: Final = 20_000  # bytes per second
TAKEOVER_SECONDS: Final = 300
Scenario = Callable[[Scene], None]


def undisturbed(_scene: Scene) -> None:
    _pass(SHORT_SECONDS)


def source_is_dropped(scene: Scene) -> None:
    _during(scene.proxy.dropped(), SHORT_SECONDS)


def source_is_stalled(scene: Scene) -> None:
    _during(scene.proxy.stalled(), LONG_SECONDS)


def source_is_slow(scene: Scene) -> None:
    _during(scene.proxy.slowed(SLOW), SHORT_SECONDS)


def kafka_is_away(scene: Scene) -> None:
    """For many batches: it stands still for longer than a session, and does not close anything."""
    with frozen(scene.bank, "kafka"):
        _pass(LONG_SECONDS)


def disk_is_full(name: str, scene: Scene) -> None:
    ballast = scene.disk(name) / "ballast"
    fill(ballast)
    try:
        _pass(SHORT_SECONDS)
    finally:
        ballast.unlink()


def second_worker_takes_over(scene: Scene) -> None:
    """The first one stands still, is given up, and wakes when the other has the connector."""
    with second_worker(scene.bank) as url:
        with frozen(scene.bank, "connect"):
            until(lambda: _runs_the_task(url), TAKEOVER_SECONDS)
        # The zombie has woken: both are of one group now, and one of them goes.
        _pass(SHORT_SECONDS)


@contextmanager
def second_worker(bank: Armed) -> Iterator[str]:
    """Of the same group, with the settings and secrets of the first; its address."""
    state = StateDir(bank.state_dir)
    kafka = Endpoints(**(read_json(state.endpoints_file) or {})).kafka
    worker = Connect(state, free_port(), kafka, NAME, name="connect-2")
    worker.prepare()
    process = Process(worker.name, worker.command(), state)
    try:
        await_ready(worker, process)
        yield worker.url
    finally:
        process.stop()


def _runs_the_task(url: str) -> bool:
    try:
        status = httpx.get(f"{url}/connectors/{NAME}/status", timeout=5).json()
    except httpx.HTTPError:
        return False
    place = url.removeprefix("http://")
    tasks = status.get("tasks", [])
    return bool(tasks) and all(
        task["worker_id"] == place and task["state"] == "RUNNING" for task in tasks
    )


def _during(trouble: AbstractContextManager[None], seconds: float) -> None:
    with trouble:
        _pass(seconds)


def _pass(seconds: float) -> None:
    """Time in which it lasts."""
    threading.Event().wait(seconds)


def _disturbed(disturb: Disturb, scene: Scene) -> None:
    disturb(scene.bank)


SCENARIOS: Final[dict[str, Scenario]] = {
    "undisturbed": undisturbed,  # the control
    **{name: partial(_disturbed, disturb) for name, disturb in DISTURBANCES.items()},
    "source dropped": source_is_dropped,
    "source stalled": source_is_stalled,
    "source slow": source_is_slow,
    "kafka away": kafka_is_away,
    "disk of the lake full": partial(disk_is_full, "lake"),
    "disk of kafka full": partial(disk_is_full, "kafka"),
    "second worker": second_worker_takes_over,
}
