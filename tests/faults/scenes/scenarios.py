"""Scenarios around a running pipeline; each returns when it is over, before all is well again."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final
from urllib.parse import urlsplit

import httpx

from cdc.config import load
from cdc.stack.embedded import await_ready
from cdc.stack.process.process import Process
from cdc.stack.servers.connect import ConnectServer
from cdc.state.directory import StateDir
from cdc.state.pipeline import resolve
from tests.faults.bank.armed import NAME, Armed
from tests.faults.bank.checks import Scenario
from tests.faults.scenes.disturbances import DISTURBANCES, Disturb, frozen
from tests.faults.scenes.maintenance import maintained
from tests.faults.scenes.scene import Scene
from tests.faults.scenes.trouble import LONG_SECONDS, SHORT_SECONDS, TROUBLES, elapse, troubled
from tests.servers.container import free_port
from tests.small_disk import fill
from tests.waiting import until

TAKEOVER_SECONDS: Final = 300


def undisturbed(_scene: Scene) -> None:
    """Do nothing for a while: the control case."""
    elapse(SHORT_SECONDS)


def source_is(what: str, scene: Scene) -> None:
    """Trouble all connections to the source for a while."""
    with troubled(scene, TROUBLES[what], "source"):
        elapse(TROUBLES[what].seconds)


def kafka_is_away(scene: Scene) -> None:
    """Suspend Kafka for many batches: longer than a session, without closing connections."""
    with frozen(scene.bank, "kafka"):
        elapse(LONG_SECONDS)


def optimized_and_vacuumed(scene: Scene) -> None:
    """Optimize and vacuum the bank's growing tables under readers and the stream."""
    with maintained(scene.bank):
        elapse(SHORT_SECONDS)


def disk_is_full(name: str, scene: Scene) -> None:
    """Fill one of the scene's disks for a while."""
    ballast = scene.disk(name) / "ballast"
    fill(ballast)
    try:
        elapse(SHORT_SECONDS)
    finally:
        ballast.unlink()


def second_worker_takes_over(scene: Scene) -> None:
    """Suspend the first worker until a second has taken over the connector; then wake it."""
    with second_worker(scene.bank) as url:
        with frozen(scene.bank, "connect"):
            until(lambda: _runs_the_task(url), TAKEOVER_SECONDS)
        # The first worker is awake again: both are in one group, and one loses the connector.
        elapse(SHORT_SECONDS)


@contextmanager
def second_worker(bank: Armed) -> Iterator[str]:
    """Start a worker of the same group, with the first's settings and secrets; yield its URL."""
    state = StateDir(bank.state_dir)
    kafka = resolve(load(bank.config_file)).endpoints.kafka
    worker = ConnectServer(state, free_port(), kafka, NAME, name="connect-2")
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
    place = urlsplit(url).netloc.rpartition("@")[2]  # a worker's id has no credentials
    tasks = status.get("tasks", [])
    return bool(tasks) and all(
        task["worker_id"] == place and task["state"] == "RUNNING" for task in tasks
    )


def _disturbed(disturb: Disturb, scene: Scene) -> None:
    disturb(scene.bank)


SCENARIOS: Final[dict[str, Scenario]] = {
    "undisturbed": undisturbed,  # the control
    **{name: partial(_disturbed, disturb) for name, disturb in DISTURBANCES.items()},
    **{f"source {what}": partial(source_is, what) for what in TROUBLES},
    "kafka away": kafka_is_away,
    "optimize and vacuum": optimized_and_vacuumed,
    "disk of the lake full": partial(disk_is_full, "lake"),
    "disk of kafka full": partial(disk_is_full, "kafka"),
    "second worker": second_worker_takes_over,
}
