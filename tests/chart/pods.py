"""Processes that stand for pods: a command under a lease, and what is seen of it."""

import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import IO, Final

import psutil

from deploy.lease import LOST
from tests.servers.proxy import proxied

Pod = subprocess.Popen[str]
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
LOOK: Final = """
import psutil
def is_alive(pid):
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
print("alive:", [pid for pid in THESE if is_alive(pid)], flush=True)
"""


@contextmanager
def pod(command: list[str], environment: Mapping[str, str]) -> Iterator[Pod]:
    """Run a command, and end it with all of its processes."""
    found = subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with found:
        try:
            yield found
        finally:
            with suppress(psutil.NoSuchProcess):
                for process in psutil.Process(found.pid).children(recursive=True):
                    process.kill()
            found.kill()


def line(stream: IO[str] | None) -> str:
    """Wait for the next line of a pod's output."""
    assert stream is not None
    return stream.readline().strip()


def work_of(found: Pod) -> list[int]:
    """Wait until WORK has begun; return its process and that process's child."""
    return [int(pid) for pid in line(found.stdout).split()]


def looks_for(processes: list[int]) -> str:
    """Return a command that prints which of the processes are alive when it begins."""
    return f"THESE = {processes}\n{LOOK}"


def is_alive(pid: int) -> bool:
    """Return whether the process runs."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def cut_off(port: int, start: Callable[..., Pod], fault: str) -> Pod:
    """Cut a pod off from the server at this port, and return it.

    Asserts that it is dead, with what it has started, before another one begins.
    """
    with proxied("127.0.0.1", port) as proxy:
        first = start("one", port=proxy.address[1])
        processes = work_of(first)
        with getattr(proxy, fault)():
            # The second says who of the first is alive when it begins.
            second = start("two", looks_for(processes))

            assert line(second.stdout) == "alive: []"
            assert first.wait() == LOST
            assert not any(map(is_alive, processes))
    return first
