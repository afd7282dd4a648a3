"""A command runs only while its pod holds the lease, and never beside another's."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

import httpx
import psutil
import pytest

from deploy import lease as under_test
from deploy.lease import LOST, Lease
from tests.chart.lease_server import PATH, TOKEN, LeaseServer
from tests.chart.rendered import ROOT
from tests.servers.proxy import proxied
from tests.waiting import until

pytestmark = pytest.mark.integration

SECONDS: Final = 6
CALL: Final = """
import sys
from pathlib import Path
from deploy.lease import Lease, run
url, holder, seconds, account, *command = sys.argv[1:]
sys.exit(run(Lease(url, holder, int(seconds), Path(account)), command))
"""
# It begins a process that outlives it, as the supervisor does, and says who is there.
WORK: Final = """
import os, subprocess, sys
child = subprocess.Popen(["sleep", "600"])
print(os.getpid(), child.pid, flush=True)
child.wait()
"""
ORDERLY: Final = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("ready", flush=True)
signal.pause()
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


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(server: LeaseServer, account: Path) -> Iterator[Start]:
    """Yield a function that starts a pod with a command under the lease; all are ended."""
    with ExitStack() as pods:

        def start(
            holder: str, work: str = WORK, port: int | None = None
        ) -> "subprocess.Popen[str]":
            url = f"http://127.0.0.1:{port or server.port}{PATH}"
            own = [sys.executable, "-c", CALL, url, holder, str(SECONDS), str(account)]
            return pods.enter_context(_pod([*own, sys.executable, "-c", work]))

        yield start


@contextmanager
def _pod(command: list[str]) -> Iterator["subprocess.Popen[str]"]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    pod = subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with pod:
        try:
            yield pod
        finally:
            with suppress(psutil.NoSuchProcess):
                for process in psutil.Process(pod.pid).children(recursive=True):
                    process.kill()
            pod.kill()


def line(stream: object) -> str:
    assert hasattr(stream, "readline")
    return str(stream.readline()).strip()


def work_of(pod: "subprocess.Popen[str]") -> list[int]:
    """Wait until the command has begun; return its process and that process's child."""
    return [int(pid) for pid in line(pod.stdout).split()]


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_the_command_waits_for_whoever_holds_it(server: LeaseServer, start: Start) -> None:
    server.give("another", seconds=3600)
    pod = start("one", ORDERLY)

    assert line(pod.stderr) == "lease: waiting for another, which holds it"
    assert server.holder == "another"
    server.give("", seconds=3600)
    assert line(pod.stdout) == "ready"
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
    pod = start("one")
    line(pod.stderr)

    pod.send_signal(signal.SIGTERM)

    assert pod.wait() != 0
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
    with proxied("127.0.0.1", server.port) as proxy:
        first = start("one", port=proxy.address[1])
        processes = work_of(first)
        with getattr(proxy, fault)():
            # The second says who of the first is alive when it begins.
            second = start("two", _looks_for(processes))

            assert line(second.stdout) == "alive: []"
            assert first.wait() == LOST
            assert not any(map(is_alive, processes))
    assert "it could not be renewed: the job was killed" in first.communicate()[1]


def _looks_for(processes: list[int]) -> str:
    looks = "print('alive:', [p for p in THESE if psutil.pid_exists(p) and "
    looks += "psutil.Process(p).status() != psutil.STATUS_ZOMBIE], flush=True)"
    return f"import psutil\nTHESE = {processes}\n{looks}\n"


def test_a_pod_whose_lease_is_another_s_dies_at_once(server: LeaseServer, start: Start) -> None:
    pod = start("one")
    processes = work_of(pod)

    until(lambda: _taken_by_force(server))

    assert pod.wait() == LOST
    assert not any(map(is_alive, processes))
    assert server.holder == "another"
    assert "another holds it: the job was killed" in pod.communicate()[1]


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
    pod = start("one")

    assert line(pod.stderr) == f"lease: it cannot be taken: {PATH} answers 401"
    (account / "token").write_text(TOKEN)  # as Kubernetes replaces it
    work_of(pod)
    assert server.holder == "one"


def test_no_answer_is_an_error(account: Path, server: LeaseServer) -> None:
    url = f"http://127.0.0.1:{server.port}/apis/other"

    with pytest.raises(httpx.HTTPStatusError, match="404"):
        Lease(url, "one", SECONDS, account).attempt()
