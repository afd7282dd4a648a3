"""Whatever stops on the way of a change: ``status`` says which hop, why, and what to do.

Each fault leaves the pipeline as it was, so the tests share one installation.
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

from cdc.config import load
from cdc.kafka.topics import delete_topics, ensure_topics
from cdc.operate import requests
from cdc.operate.requests import Request
from cdc.source.bootstrap import topic_specs, written_by_itself
from cdc.stack.endpoints import Endpoints, resolve
from tests.e2e.installation import Installation
from tests.meanwhile import meanwhile
from tests.servers.process import ProcessServer
from tests.stopped import stopped
from tests.waiting import until

pytestmark = pytest.mark.e2e

NAME: Final = "wal2lake"
TOLD_SECONDS: Final = 90  # a minute, and what the command takes on a machine that is busy
WELL_SECONDS: Final = 300
SEND_SECONDS: Final = 75  # more than producer.override.max.block.ms

Fault = Callable[[Installation], AbstractContextManager[None]]


def endpoints(shop: Installation) -> Endpoints:
    return resolve(load(shop.folder / "wal2lake.yaml"))


def connector(shop: Installation, verb: str) -> None:
    url = f"{endpoints(shop).connect}/connectors/{NAME}/{verb}"
    httpx.put(url, timeout=60).raise_for_status()


def walsender(shop: Installation) -> int | None:
    with shop.connect() as connection:
        query = "SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s"
        row = connection.execute(query, (NAME,)).fetchone()
    return row[0] if row else None


def stands(server: str) -> Fault:
    """A server of ours, or the job, under a debugger."""

    def fault(shop: Installation) -> AbstractContextManager[None]:
        return stopped(shop.pid(server))

    return fault


@contextmanager
def the_jvm_of_the_job_stands(shop: Installation) -> Iterator[None]:
    children = psutil.Process(shop.pid("job")).children(recursive=True)
    java = next(child for child in children if "java" in child.name())
    with stopped(java.pid):
        yield


@contextmanager
def the_source_stands(shop: Installation) -> Iterator[None]:
    server = shop.servers["postgres"]
    if not isinstance(server, ProcessServer) or server.process is None:
        pytest.skip("the source is no process of this machine")
    with stopped(server.process.pid):
        yield


@contextmanager
def the_walsender_stands(shop: Installation) -> Iterator[None]:
    pid = walsender(shop)
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def asked_by_rest(verb: str) -> Fault:
    @contextmanager
    def fault(shop: Installation) -> Iterator[None]:
        connector(shop, verb)
        try:
            yield
        finally:
            connector(shop, "resume")

    return fault


@contextmanager
def another_reads_the_slot(shop: Installation) -> Iterator[None]:
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
def a_topic_is_gone(shop: Installation) -> Iterator[None]:
    """One that the connector writes to and nobody lands."""
    topic, kafka = written_by_itself(NAME), endpoints(shop).kafka
    specs = topic_specs(load(shop.folder / "wal2lake.yaml"), [])
    delete_topics(kafka, [topic])
    try:
        yield
    finally:
        ensure_topics(kafka, [spec for spec in specs if spec.name == topic])


@contextmanager
def somebody_locks_the_heartbeat(shop: Installation) -> Iterator[None]:
    with psycopg.connect(shop.source_url) as connection:
        connection.execute("LOCK TABLE wal2lake.heartbeat")
        yield


@contextmanager
def the_registry_stands_and_a_table_changes(shop: Installation) -> Iterator[None]:
    with stopped(shop.pid("registry")):
        shop.execute("ALTER TABLE shop.places ADD COLUMN note text; UPDATE shop.places SET note=1")
        yield


@contextmanager
def a_request_holds_the_cuts(shop: Installation) -> Iterator[None]:
    """One after the other: none holds them for longer than it may."""
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
    "walsender": (the_walsender_stands, ("source to Kafka stands still", "sends nothing")),
    "source": (the_source_stands, ("source to Kafka stands still", "Postgres")),
    "connect": (stands("connect"), ("source to Kafka stands still", "Connect")),
    "kafka": (stands("kafka"), ("source to Kafka stands still", "Kafka")),
    "registry": (the_registry_stands_and_a_table_changes, ("stands still", "registry")),
    "job": (stands("job"), ("hangs", "is not stopped")),
    "jvm of the job": (the_jvm_of_the_job_stands, ("hangs", "is not stopped")),
    "topic": (a_topic_is_gone, ("source to Kafka stands still", "no topic __debezium-heartbeat")),
    "stopped": (asked_by_rest("stop"), ("stands still", "the connector is STOPPED")),
    "another reader": (another_reads_the_slot, ("stands still", "(intruder)", "a slot has one")),
    "lock": (somebody_locks_the_heartbeat, ("stands still", "for a lock that pid")),
}


def is_well(shop: Installation) -> bool:
    said = shop.done("status", "--check")
    sys.stdout.write(said.stdout)
    return said.returncode == 0


def says(shop: Installation, *words: str) -> bool:
    """Whether one line has them all; nothing that stands still is called live meanwhile."""
    said = shop.done("status", "--live")
    sys.stdout.write(said.stdout)  # shown where it never does
    lines = said.stdout.splitlines()
    return said.returncode != 0 and any(all(word in line for word in words) for line in lines)


def test_a_paused_connector_and_held_cuts_are_told_by_the_hop(shop: Installation) -> None:
    until(lambda: is_well(shop), WELL_SECONDS)
    with asked_by_rest("pause")(shop), a_request_holds_the_cuts(shop):
        until(lambda: says(shop, "stands still", "the connector is PAUSED"), TOLD_SECONDS)
        until(lambda: says(shop, "log to tables stands still", "left-behind"), TOLD_SECONDS)
        facts = shop.any_facts("status", "--check")
        assert {each["kind"] for each in facts["findings"]} >= {"stands_still", "server_failed"}
        assert "in sync" not in shop.done("sync", "--timeout", "1").stdout
    until(lambda: is_well(shop), WELL_SECONDS)
    assert shop.run("status", "--check").strip() == "all is well"


@pytest.mark.deep
@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_told_with_its_hop_and_passes(shop: Installation, fault: str) -> None:
    breaks, words = FAULTS[fault]
    until(lambda: is_well(shop), WELL_SECONDS)
    with breaks(shop):
        until(lambda: says(shop, *words), TOLD_SECONDS)
    until(lambda: is_well(shop), WELL_SECONDS)
    shop.run("sync", "--timeout", "300")


@pytest.mark.deep
def test_a_broker_is_away_for_longer_than_a_send_may_wait(shop: Installation) -> None:
    """Whether connector and job fail of it or wait, they go on when the broker is back."""
    until(lambda: is_well(shop), WELL_SECONDS)
    with stopped(shop.pid("kafka")):
        back = time.monotonic() + SEND_SECONDS
        until(lambda: time.monotonic() > back and not is_well(shop), WELL_SECONDS)
    until(lambda: is_well(shop), WELL_SECONDS)
    shop.run("sync", "--timeout", "300")


@pytest.mark.deep
@pytest.mark.parametrize("server", ["job", "connect", "kafka", "registry"])
def test_what_is_killed_is_well_again_by_itself(shop: Installation, server: str) -> None:
    until(lambda: is_well(shop), WELL_SECONDS)
    shop.crash(server)
    until(lambda: shop.done("status", "--live").returncode != 0)
    until(lambda: is_well(shop), WELL_SECONDS)
