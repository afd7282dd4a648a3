"""Beyond one machine: each server that there are several of is lost under load, and the job moves.

Afterwards the lake equals the source. Losses last until the lake is equal again without the server.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.containers.stack import UP_SECONDS, Stack, stack_for, until_healthy
from tests.containers.writer import TABLES, fill, write
from tests.meanwhile import meanwhile
from tests.waiting import until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(2400)]
BROKERS = ("kafka", "kafka-2", "kafka-3")
CONNECT = ("connect", "connect-2")
WORKERS = ("spark-worker-1", "spark-worker-2")
TOPIC = "wal2lake.public.orders"
ASK = """
import json
from confluent_kafka.admin import AdminClient
servers = "kafka:19092,kafka-2:19092,kafka-3:19092"
topics = AdminClient({"bootstrap.servers": servers}).list_topics(timeout=30).topics
first = {name: topic.partitions[0] for name, topic in topics.items()}
print(json.dumps({name: (one.leader, len(one.replicas)) for name, one in first.items()}))
"""
ROWS = 200_000
LARGE = "UPDATE orders SET cents = cents + 1"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Yield the stack of deploy/cluster.yml, with two tables in the lake."""
    folder = tmp_path_factory.mktemp("cluster")
    with stack_for("wal2lake-cluster", folder, "deploy/cluster.yml") as found:
        found.up("--build")
        found.execute(*TABLES, fill(ROWS))
        found.assert_equal()
        yield found


def tasks(cluster: Stack, worker: str) -> int:
    """Return how many tasks a worker of Spark has begun and not ended."""
    count = "cat /tmp/executors/*/*/stderr | grep -c 'Executor: {} task' || true"
    begun, ended = (int(cluster.shell(worker, count.format(w))) for w in ("Running", "Finished"))
    return begun - ended


def lose_when_busy(cluster: Stack, worker: str) -> None:
    """Kill a worker of Spark with the executors of it, in the middle of a task."""
    until(lambda: tasks(cluster, worker) > 0, UP_SECONDS)
    cluster.compose("kill", worker)


def partitions(cluster: Stack) -> dict[str, tuple[str, int]]:
    """Return the broker that leads each topic's first partition, and how many have it, by topic."""
    found = json.loads(cluster.compose("exec", "-T", "job", "python", "-c", ASK))
    names = dict(enumerate(BROKERS, start=1))  # without a leader it is -1
    return {topic: (names.get(one, ""), replicas) for topic, (one, replicas) in found.items()}


def test_every_topic_is_on_all_brokers(cluster: Stack) -> None:
    found = partitions(cluster)

    assert TOPIC in found
    assert {topic: replicas for topic, (_, replicas) in found.items() if replicas != 3} == {}


@pytest.mark.parametrize("worker", CONNECT)
def test_each_worker_of_connect_takes_requests(cluster: Stack, worker: str) -> None:
    """One of them leads, and the other passes on to it what only the leader may do."""
    restart = f"http://{worker}:8083/connectors/wal2lake/tasks/0/restart"
    code = f"import httpx; print(httpx.post({restart!r}, timeout=90).status_code)"

    assert cluster.compose("exec", "-T", "job", "python", "-c", code).strip() == "204"


def test_both_workers_of_spark_have_work(cluster: Stack) -> None:
    cluster.execute(LARGE)
    cluster.assert_equal()

    ran = "cat /tmp/executors/*/*/stderr | grep -c 'Executor: Finished task' || true"
    assert [int(cluster.shell(worker, ran)) > 0 for worker in WORKERS] == [True, True]


def test_a_worker_of_spark_is_lost_in_a_large_merge(cluster: Stack) -> None:
    cluster.execute(LARGE)
    lose_when_busy(cluster, "spark-worker-1")

    cluster.assert_equal()

    cluster.compose("start", "spark-worker-1")


def test_a_worker_of_spark_is_lost_in_a_rebuild(cluster: Stack) -> None:
    with ThreadPoolExecutor() as beside:
        rebuild = beside.submit(cluster.wal2lake, "rebuild", "--all")
        lose_when_busy(cluster, "spark-worker-2")
        rebuild.result()
    cluster.assert_equal()

    cluster.compose("start", "spark-worker-2")


def test_the_broker_that_leads_is_lost_under_load(cluster: Stack) -> None:
    lost, _ = partitions(cluster)[TOPIC]
    with meanwhile(lambda: write(cluster), every=0.1):
        cluster.compose("kill", lost)
        until(lambda: partitions(cluster)[TOPIC][0] in set(BROKERS) - {lost}, 120)
    cluster.assert_equal()

    cluster.compose("start", lost)
    until_healthy(cluster, lost)
    cluster.assert_equal()


def test_the_worker_of_connect_that_reads_the_source_is_lost_under_load(cluster: Stack) -> None:
    lost = reader(cluster)
    with meanwhile(lambda: write(cluster), every=0.1):
        cluster.compose("kill", lost)
        until(lambda: reader(cluster) in set(CONNECT) - {lost}, 120)
    cluster.assert_equal()

    cluster.compose("start", lost)


def reader(cluster: Stack) -> str:
    """Return the worker of Connect whose address holds the slot; empty while nobody does."""
    with cluster.connect() as connection:
        found = connection.execute("SELECT host(client_addr) FROM pg_stat_replication").fetchone()
    addresses = {cluster.address(name): name for name in CONNECT}
    return addresses.get(found[0], "") if found else ""


def test_the_job_moves_with_nothing_but_lake_kafka_and_source(cluster: Stack) -> None:
    with meanwhile(lambda: write(cluster), every=0.1):
        cluster.compose("kill", "job")
        cluster.compose("rm", "--force", "job")
        cluster.remove_volume("state")
        cluster.up("job")
    cluster.assert_equal()
