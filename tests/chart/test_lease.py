"""A command runs only while its pod holds the lease, and never beside another's."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import httpx
import pytest

from deploy import lease as under_test
from deploy.lease import LOST, Lease
from tests.chart.lease_server import PATH, TOKEN, LeaseServer
from tests.chart.pods import ORDERLY, WORK, Pod, cut_off, is_alive, line, pod, work_of
from tests.chart.rendered import ROOT
from tests.waiting import until

pytestmark = pytest.mark.integration

SECONDS: Final = 6
Start = Callable[..., Pod]
CALL: Final = """
import sys
from pathlib import Path
from deploy.lease import Lease, run
url, holder, seconds, account, *command = sys.argv[1:]
sys.exit(run(Lease(url, holder, int(seconds), Path(account)), command))
"""


@pytest.fixture
def server() -> Iterator[LeaseServer]:
    found = LeaseServer()
    with found.serving():
        yield found


@pytest.fixture
def account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    return tmp_path


@pytest.fixture
def start(server: LeaseServer, account: Path) -> Iterator[Start]:
    """Yield a function that starts a pod with a command under the lease; all are ended."""
    with ExitStack() as pods:

        def start(holder: str, work: str = WORK, port: int | None = None) -> Pod:
            url = f"http://127.0.0.1:{port or server.port}{PATH}"
            own = [sys.executable, "-c", CALL, url, holder, str(SECONDS), str(account)]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
            return pods.enter_context(pod([*own, sys.executable, "-c", work], environment))

        yield start


def test_the_command_waits_for_whoever_holds_it(server: LeaseServer, start: Start) -> None:
    server.give("another", seconds=3600)
    first = start("one", ORDERLY)

    assert line(first.stderr) == "lease: waiting for another, which holds it"
    assert server.holder == "another"
    server.give("", seconds=3600)
    assert line(first.stdout) == "ready"
    assert server.holder == "one"


def test_a_stop_reaches_the_command_and_gives_the_lease_back(
    server: LeaseServer, start: Start
) -> None:
    first = start("one", ORDERLY)
    assert line(first.stdout) == "ready"
    second = start("two", ORDERLY)
    assert line(second.stderr) == "lease: waiting for one, which holds it"

    first.send_signal(signal.SIGTERM)

    assert first.wait() == 7
    assert line(second.stdout) == "ready"
    assert [holder for holder in server.history if holder in {"", "two"}][:2] == ["", "two"]
    assert server.spec["leaseTransitions"] == 2


def test_a_stop_while_it_waits_ends_it(server: LeaseServer, start: Start) -> None:
    server.give("another", seconds=3600)
    first = start("one")
    line(first.stderr)

    first.send_signal(signal.SIGTERM)

    assert first.wait() != 0
    assert server.history == ["another"]


def test_the_exit_code_is_the_command_s(server: LeaseServer, start: Start) -> None:
    assert start("one", "raise SystemExit(12)").wait() == 12
    assert start("one", "import os; os.kill(os.getpid(), 9)").wait() == 128 + 9
    assert server.holder == ""


def test_a_pod_that_vanished_is_succeeded(server: LeaseServer, start: Start) -> None:
    first = start("one")
    command, child = work_of(first)
    for pid in (first.pid, command, child):  # as a machine does that loses its power
        os.kill(pid, signal.SIGKILL)
    first.wait()

    work_of(start("two"))

    assert server.history[-1] == "two"
    assert "" not in server.history


@pytest.mark.parametrize("fault", ["dropped", "stalled"])
def test_a_pod_that_is_cut_off_is_dead_before_another_begins(
    server: LeaseServer, start: Start, fault: str
) -> None:
    first = cut_off(server.port, start, fault)
    assert "it could not be renewed: the job was killed" in first.communicate()[1]


def test_a_pod_whose_lease_is_another_s_dies_at_once(server: LeaseServer, start: Start) -> None:
    first = start("one")
    processes = work_of(first)

    until(lambda: _taken_by_force(server))

    assert first.wait() == LOST
    assert not any(map(is_alive, processes))
    assert server.holder == "another"
    assert "another holds it: the job was killed" in first.communicate()[1]


def _taken_by_force(server: LeaseServer) -> bool:
    with suppress(AssertionError):  # the pod renewed it in between
        server.give("another", seconds=3600)
    return server.holder == "another"


def test_of_many_at_once_one_takes_it(server: LeaseServer, account: Path) -> None:
    url = f"http://127.0.0.1:{server.port}{PATH}"
    ready = threading.Barrier(8)
    found: dict[str, str] = {}

    def attempt(name: str) -> None:
        ready.wait()
        found[name] = Lease(url, name, SECONDS, account).attempt()

    threads = [threading.Thread(target=attempt, args=(f"pod-{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [name for name, holder in found.items() if name == holder] == [server.holder]
    assert set(found.values()) <= {"", server.holder}


def test_it_expires_by_the_clock_of_who_waits(
    server: LeaseServer, account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = 1000.0
    monkeypatch.setattr(under_test, "now", lambda: at)
    url = f"http://127.0.0.1:{server.port}{PATH}"
    one, two = (Lease(url, name, 60, account) for name in ("one", "two"))
    assert one.attempt() == "one"

    assert two.attempt() == "one"  # first seen now, however old it is
    at += 59
    assert two.attempt() == "one"
    assert one.attempt() == "one"
    at += 59
    assert two.attempt() == "one"  # it was renewed: seen anew
    at += 60
    assert two.attempt() == "two"
    assert one.attempt() == "two"


def test_a_server_that_refuses_is_named(server: LeaseServer, account: Path, start: Start) -> None:
    (account / "token").write_text("of nobody")
    first = start("one")

    assert line(first.stderr) == f"lease: it cannot be taken: {PATH} answers 401"
    (account / "token").write_text(TOKEN)  # as Kubernetes replaces it
    work_of(first)
    assert server.holder == "one"


def test_no_answer_is_an_error(account: Path, server: LeaseServer) -> None:
    url = f"http://127.0.0.1:{server.port}/apis/other"

    with pytest.raises(httpx.HTTPStatusError, match="404"):
        Lease(url, "one", SECONDS, account).attempt()
