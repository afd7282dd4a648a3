"""Test that ``status`` names the hop at which changes stop, why, and what to do.

Each fault leaves the pipeline unchanged, so the tests share one installation.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from typing import Final

import httpx
import psutil
import psycopg
import pytest
from psycopg import pq

from cdc.capture.topic_specs import debezium_heartbeat_topic, topic_specs
from cdc.config import load
from cdc.kafka.topics import delete_topics, ensure_topics
from cdc.state import requests
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import resolve
from cdc.state.requests import Request
from tests.e2e.installation import Installation
from tests.meanwhile import meanwhile
from tests.servers.process import ProcessServer
from tests.stopped import stopped
from tests.waiting import until

pytestmark = pytest.mark.e2e

NAME: Final = "wal2lake"
REPORT_SECONDS: Final = 90  # a minute, plus the command on a busy machine
WELL_SECONDS: Final = 300
SEND_SECONDS: Final = 75  # more than producer.override.max.block.ms

Fault = Callable[[Installation], AbstractContextManager[None]]


def endpoints(shop: Installation) -> Endpoints:
    """Return where the installation's servers are."""
    return resolve(load(shop.folder / "wal2lake.yaml")).endpoints


def connector(shop: Installation, verb: str) -> None:
    """Send the connector a request: pause, stop or resume."""
    url = f"{endpoints(shop).connect}/connectors/{NAME}/{verb}"
    httpx.put(url, timeout=60).raise_for_status()


def walsender(shop: Installation) -> int | None:
    """Return the pid of the slot's walsender; None if nobody reads the slot."""
    with shop.connect() as connection:
        query = "SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s"
        row = connection.execute(query, (NAME,)).fetchone()
    return row[0] if row else None


def suspended(server: str) -> Fault:
    """Return a fault that suspends an embedded server or the job."""

    def fault(shop: Installation) -> AbstractContextManager[None]:
        return stopped(shop.pid(server))

    return fault


@contextmanager
def jvm_of_the_job_suspended(shop: Installation) -> Iterator[None]:
    """Suspend only the Java process of the job."""
    children = psutil.Process(shop.pid("job")).children(recursive=True)
    java = next(child for child in children if "java" in child.name())
    with stopped(java.pid):
        yield


@contextmanager
def source_suspended(shop: Installation) -> Iterator[None]:
    """Suspend the source's Postgres."""
    server = shop.servers["postgres"]
    if not isinstance(server, ProcessServer) or server.process is None:
        pytest.skip("needs a source process on this machine")
    with stopped(server.process.pid):
        yield


@contextmanager
def walsender_suspended(shop: Installation) -> Iterator[None]:
    """Suspend the slot's walsender."""
    pid = walsender(shop)
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def connector_request(verb: str) -> Fault:
    """Return a fault that pauses or stops the connector by its REST interface."""

    @contextmanager
    def fault(shop: Installation) -> Iterator[None]:
        connector(shop, verb)
        try:
            yield
        finally:
            connector(shop, "resume")

    return fault


@contextmanager
def slot_read_by_another(shop: Installation) -> Iterator[None]:
    """Read the slot with another client, so that the connector cannot."""
    connector(shop, "stop")
    until(lambda: walsender(shop) is None)
    url = f"{shop.source_url}?replication=database&application_name=intruder"
    reader = pq.PGconn.connect(f"{url}&options=-cwal_sender_timeout%3D0".encode())
    assert reader.status == pq.ConnStatus.OK, reader.error_message
    options = f"proto_version '1', publication_names '{NAME}'"
    started = reader.exec_(f'START_REPLICATION SLOT "{NAME}" LOGICAL 0/0 ({options})'.encode())
    assert started.status == pq.ExecStatus.COPY_BOTH, started.error_message
    connector(shop, "resume")
    try:
        yield
    finally:
        reader.finish()


@contextmanager
def topic_deleted(shop: Installation) -> Iterator[None]:
    """Delete a topic that the connector writes to but the job does not read."""
    topic, kafka = debezium_heartbeat_topic(NAME), endpoints(shop).kafka
    specs = topic_specs(load(shop.folder / "wal2lake.yaml"), [])
    delete_topics(kafka, [topic])
    try:
        yield
    finally:
        ensure_topics(kafka, [spec for spec in specs if spec.name == topic])


@contextmanager
def heartbeat_locked(shop: Installation) -> Iterator[None]:
    """Lock the heartbeat's table."""
    with psycopg.connect(shop.source_url) as connection:
        connection.execute("LOCK TABLE wal2lake.heartbeat")
        yield


@contextmanager
def registry_suspended_while_a_table_changes(shop: Installation) -> Iterator[None]:
    """Suspend the registry and change a table, whose new schema must be registered."""
    with stopped(shop.pid("registry")):
        shop.execute("ALTER TABLE shop.places ADD COLUMN note text; UPDATE shop.places SET note=1")
        yield


@contextmanager
def cuts_held_by_requests(shop: Installation) -> Iterator[None]:
    """Hold the cuts by repeated requests, because each may do so only for a limited time."""
    folder, number = requests.directory(shop.state_dir), count()

    def hold() -> None:
        turn = next(number)
        requests.write(folder, Request(id=f"left-behind-{turn}", expires_at=time.time() + 3600))
        if turn:
            requests.remove(folder, f"left-behind-{turn - 1}")

    hold()
    try:
        with meanwhile(hold, every=requests.MOST_HOLD_SECONDS / 2):
            yield
    finally:
        requests.remove(folder, f"left-behind-{next(number) - 1}")


FAULTS: Final[dict[str, tuple[Fault, tuple[str, ...]]]] = {
    "walsender": (walsender_suspended, ("source to Kafka has stood still", "sends nothing")),
    "source": (source_suspended, ("source to Kafka has stood still", "Postgres")),
    "connect": (suspended("connect"), ("source to Kafka has stood still", "Connect")),
    "kafka": (suspended("kafka"), ("source to Kafka has stood still", "Kafka")),
    "registry": (registry_suspended_while_a_table_changes, ("stands still", "registry")),
    "job": (suspended("job"), ("hangs", "not stopped")),
    "jvm of the job": (jvm_of_the_job_suspended, ("hangs", "not stopped")),
    "topic": (
        topic_deleted,
        ("source to Kafka has stood still", "no topic __debezium-heartbeat"),
    ),
    "stopped": (connector_request("stop"), ("stands still", "the connector is STOPPED")),
    "another reader": (slot_read_by_another, ("stands still", "(intruder)", "a slot has one")),
    "lock": (heartbeat_locked, ("stands still", "for a lock that pid")),
}


def is_well(shop: Installation) -> bool:
    """Return whether ``status --check`` succeeds."""
    status = shop.done("status", "--check")
    sys.stdout.write(status.stdout)
    return status.returncode == 0


def reports(shop: Installation, *words: str) -> bool:
    """Return whether ``status --live`` fails and one of its lines has all the words."""
    status = shop.done("status", "--live")
    sys.stdout.write(status.stdout)  # shown if the test fails
    lines = status.stdout.splitlines()
    return status.returncode != 0 and any(all(word in line for word in words) for line in lines)


def test_status_names_the_hop_of_a_paused_connector_and_of_held_cuts(shop: Installation) -> None:
    until(lambda: is_well(shop), WELL_SECONDS)
    with connector_request("pause")(shop), cuts_held_by_requests(shop):
        until(lambda: reports(shop, "stands still", "the connector is PAUSED"), REPORT_SECONDS)
        until(lambda: reports(shop, "log to tables has stood still", "left-behind"), REPORT_SECONDS)
        facts = shop.any_facts("status", "--check")
        assert {finding["kind"] for finding in facts["findings"]} >= {
            "stands_still",
            "server_failed",
        }
        assert "in sync" not in shop.done("sync", "--timeout", "1").stdout
    until(lambda: is_well(shop), WELL_SECONDS)
    assert shop.run("status", "--check").strip() == "all is well"


@pytest.mark.deep
@pytest.mark.parametrize("fault", FAULTS)
def test_status_names_the_hop_of_each_fault_and_is_well_after_it(
    shop: Installation, fault: str
) -> None:
    breaks, words = FAULTS[fault]
    until(lambda: is_well(shop), WELL_SECONDS)
    with breaks(shop):
        until(lambda: reports(shop, *words), REPORT_SECONDS)
    until(lambda: is_well(shop), WELL_SECONDS)
    shop.run("sync", "--timeout", "300")


@pytest.mark.deep
def test_changes_move_again_after_the_broker_was_away_longer_than_a_send_waits(
    shop: Installation,
) -> None:
    """Connector and job may fail or wait; they go on when the broker is back."""
    until(lambda: is_well(shop), WELL_SECONDS)
    with stopped(shop.pid("kafka")):
        back = time.monotonic() + SEND_SECONDS
        until(lambda: time.monotonic() > back and not is_well(shop), WELL_SECONDS)
    until(lambda: is_well(shop), WELL_SECONDS)
    shop.run("sync", "--timeout", "300")


@pytest.mark.deep
@pytest.mark.parametrize("server", ["job", "connect", "kafka", "registry"])
def test_a_killed_process_recovers_by_itself(shop: Installation, server: str) -> None:
    until(lambda: is_well(shop), WELL_SECONDS)
    shop.crash(server)
    until(lambda: shop.done("status", "--live").returncode != 0)
    until(lambda: is_well(shop), WELL_SECONDS)
