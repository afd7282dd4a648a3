"""The stack comes up from nothing, waits for its first tables, and keeps them equal."""

import subprocess

import httpx
import pytest

from tests.containers.stack import CONFIG, Stack, inspected
from tests.waiting import until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]

SLIM = 130_000_000  # bytes of python:3.11-slim-bookworm as it is published
SHOP = """
CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL, mail text);
CREATE TABLE orders (id bigint PRIMARY KEY, customer int REFERENCES customers, cents bigint);
CREATE TABLE visits (at timestamptz, page text);
ALTER TABLE visits REPLICA IDENTITY FULL;
INSERT INTO customers SELECT i, 'customer ' || i, NULL FROM generate_series(1, 5000) i;
INSERT INTO orders SELECT i, 1 + i % 5000, i * 7 FROM generate_series(1, 50000) i;
INSERT INTO visits SELECT now(), 'page ' || i % 10 FROM generate_series(1, 1000) i
"""
CHANGES = (
    "UPDATE orders SET cents = cents + 1 WHERE id % 10 = 0",
    "DELETE FROM orders WHERE id % 97 = 0",
    "INSERT INTO orders SELECT i, 1, 0 FROM generate_series(50001, 53000) i",
    "ALTER TABLE customers ADD since date DEFAULT '2020-02-02'",
    "UPDATE customers SET since = NULL, mail = repeat(md5(id::text), 200) WHERE id < 30",
)


def test_it_is_healthy_before_there_is_a_table(stack: Stack) -> None:
    """It waits for the first table, and says so, instead of failing and starting again."""
    stack.up("--build")

    assert stack.container("job")["RestartCount"] == 0
    assert "waiting for a table that matches public.*" in stack.compose("logs", "job")


def test_the_snapshot_and_changes_arrive(stack: Stack) -> None:
    stack.execute(*SHOP.split(";"))
    until(lambda: "job is applying" in stack.compose("logs", "job"), 300)
    stack.assert_equal()

    stack.execute(*CHANGES)

    stack.assert_equal()
    assert stack.wal2lake("status", "--check").strip() == "all is well"


def test_the_job_s_pages_tell_of_it(stack: Stack) -> None:
    url = f"http://127.0.0.1:{stack.ports['job']}"
    metrics = httpx.get(f"{url}/metrics").text

    assert httpx.get(f"{url}/readyz").text == "all is well\n"
    assert 'wal2lake_table_events_total{operation="deletes",table="public.orders"} 515.0' in metrics
    assert 'wal2lake_table_lag_events{table="public.orders"} 0.0' in metrics


def test_the_job_can_do_nothing_but_its_work(stack: Stack) -> None:
    def refused(script: str) -> str:
        done = stack.run("exec", "-T", "job", "sh", "-c", script)
        assert done.returncode != 0, done.stdout
        return done.stderr

    assert stack.compose("exec", "-T", "job", "id", "-u").strip() == "1000"
    assert "Read-only file system" in refused("touch /opt/wal2lake/more")
    capabilities = stack.compose("exec", "-T", "job", "grep", "CapEff", "/proc/1/status")
    assert int(capabilities.split()[1], 16) == 0


def test_the_job_s_image_has_what_it_needs_and_no_more(stack: Stack) -> None:
    find = "import importlib.metadata as m; print(*(d.name for d in m.distributions()))"
    installed = set(stack.compose("exec", "-T", "job", "python", "-c", find).split())
    image = inspected(stack.container("job")["Image"])
    base = inspected("python:3.11-slim-bookworm")

    assert {"pyspark", "deltalake", "wal2lake"} <= installed
    assert not installed & {"pytest", "mypy", "ruff", "testcontainers", "uv", "hypothesis"}
    # A stand-in for the base may be larger than the base.
    assert image["Size"] - base["Size"] + SLIM < 900_000_000


def test_it_stays_within_its_memory(stack: Stack) -> None:
    state = stack.container("job")
    limit = state["HostConfig"]["Memory"]
    used = stack.compose("exec", "-T", "job", "cat", _memory_file(stack))

    assert limit == 2500 * 1024**2
    assert not state["State"]["OOMKilled"]
    assert int(used) < limit


def _memory_file(stack: Stack) -> str:
    """Return the file with the highest use of memory so far, by version 2 or 1 of cgroups."""
    files = "/sys/fs/cgroup/memory.peak /sys/fs/cgroup/memory/memory.max_usage_in_bytes"
    return stack.run("exec", "-T", "job", "sh", "-c", f"ls {files} 2>/dev/null").stdout.strip()


def test_a_wrong_command_is_an_error(stack: Stack) -> None:
    done = stack.run("run", "--rm", "job", "up", "--no-such-option", *CONFIG)

    assert done.returncode == 2
    assert "No such option" in done.stderr


def test_no_secret_is_in_the_logs_or_on_a_command_line(stack: Stack) -> None:
    logs = stack.compose("logs", "--no-color")
    commands = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)

    assert stack.password not in logs
    assert stack.password not in commands.stdout
