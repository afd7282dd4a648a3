"""Stops, crashes and lost volumes: afterwards the lake equals the source, or the start says why."""

import pytest

from tests.containers.stack import UP_SECONDS, Stack, until_healthy
from tests.containers.writer import newest_of, write
from tests.meanwhile import meanwhile
from tests.waiting import until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]
SERVICES = ("postgres", "kafka", "registry", "connect", "job")
ENDED_BY_SIGTERM = 143  # what a Java server returns that was asked to end


@pytest.mark.parametrize("service", SERVICES)
def test_a_crash_under_load_loses_nothing(stack: Stack, service: str) -> None:
    with meanwhile(lambda: write(stack), every=0.1):
        stack.crash(service)
        until_healthy(stack, service)
        before = newest_of(stack)
        until(lambda: newest_of(stack) > before)
    stack.assert_equal()


def test_what_a_crash_of_spark_leaves_behind_is_reaped(stack: Stack) -> None:
    find_java = "for p in /proc/[0-9]*; do grep -qs java $p/comm && echo ${p#/proc/}; done; true"
    [java] = stack.compose("exec", "-T", "job", "sh", "-c", find_java).split()

    with meanwhile(lambda: write(stack), every=0.1):
        stack.compose("exec", "-T", "job", "sh", "-c", f"kill -9 {java}")
        until(lambda: "job is ready again" in stack.compose("logs", "job"), UP_SECONDS)
    stack.assert_equal()

    until(lambda: _zombies(stack) == [])  # a health check that just ends is one for a moment


def test_a_stop_is_orderly_and_a_start_goes_on(stack: Stack) -> None:
    with meanwhile(lambda: write(stack), every=0.1):
        stack.compose("stop", "job")
    assert stack.container("job")["State"]["ExitCode"] == 0
    stack.compose("stop")
    ended = {name: stack.container(name)["State"]["ExitCode"] for name in SERVICES}
    assert set(ended.values()) <= {0, ENDED_BY_SIGTERM}, ended

    stack.up()

    stack.assert_equal()


def test_containers_are_disposable(stack: Stack) -> None:
    """What has to be kept is in the volumes."""
    stack.compose("down")

    stack.up()

    stack.assert_equal()


def test_without_volumes_it_begins_anew(stack: Stack) -> None:
    stack.compose("down", "--volumes")
    stack.up()
    stack.execute("CREATE TABLE customers (id int PRIMARY KEY, name text)")
    stack.execute("INSERT INTO customers VALUES (1, 'new')")
    until(lambda: "job is applying" in stack.compose("logs", "job"), 300)

    stack.assert_equal()

    assert [table["table"] for table in stack.facts("status")["tables"]] == ["public.customers"]
    stack.compose("stop")  # the tests that follow have stacks of their own


def _zombies(stack: Stack) -> list[str]:
    """Return the lines of the processes that have ended and that nobody has waited for."""
    states = stack.compose(
        "exec", "-T", "job", "sh", "-c", "cat /proc/[0-9]*/stat 2>/dev/null || true"
    )
    return [line for line in states.splitlines() if line.rpartition(")")[2].split()[0] == "Z"]
