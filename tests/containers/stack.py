"""Runs the stack of docker-compose.yml by Compose, under another name and on free ports."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import psycopg
import pytest
import yaml

from tests.servers.container import PORTS as OF_SERVERS
from tests.servers.container import free_port
from tests.waiting import until
from tools.images import engine
from tools.images.compose import settings

ROOT: Final = Path(__file__).resolve().parent.parent.parent
CONFIG: Final = ("--config", "/etc/wal2lake/wal2lake.yaml")

UP_SECONDS: Final = 900
PORTS: Final = {**OF_SERVERS, "job": 9464, "prometheus": 9090, "store": 7070}


@dataclass(kw_only=True)
class Stack:
    """One run of the stack; ``override`` is the file with its ports, ``more`` are files besides.

    ``environ`` has what would be in .env.
    """

    name: str
    override: Path
    more: tuple[str, ...] = ()
    tree: Path = ROOT
    environ: Mapping[str, str] = field(default_factory=dict)
    password: str = field(default_factory=lambda: f"canary-{uuid4().hex}")
    ports: dict[str, int] = field(default_factory=lambda: {name: free_port() for name in PORTS})

    def __post_init__(self) -> None:
        there = yaml.safe_load((self.tree / "docker-compose.yml").read_text())["services"]
        services = {
            name: {"ports": [f"127.0.0.1:{self.ports[name]}:{PORTS[name]}"]}
            for name in PORTS.keys() & there  # another tree may have fewer
        }
        # Without the tag Compose would publish the ports of both files.
        text = yaml.safe_dump({"services": services}).replace("ports:", "ports: !override")
        self.override.write_text(text)

    def compose(self, *arguments: str, code: int = 0) -> str:
        """Run ``docker compose`` and return its output; assert that it ends with ``code``."""
        done = self.run(*arguments)
        assert done.returncode == code, f"{arguments}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run ``docker compose`` and return what came of it."""
        named = [self.tree / name for name in ("docker-compose.yml", *self.more)]
        files = [part for file in (*named, self.override) for part in ("--file", str(file))]
        where = ["--project-name", self.name, "--project-directory", str(self.tree), *files]
        return subprocess.run(
            ["docker", "compose", *where, *arguments],
            env={**settings(), "POSTGRES_PASSWORD": self.password, **self.environ},
            capture_output=True,
            text=True,
            check=False,
            timeout=UP_SECONDS,
        )

    def up(self, *arguments: str) -> None:
        """Start what does not run, and wait until all of it is healthy."""
        self.compose("up", "--wait", "--wait-timeout", str(UP_SECONDS), *arguments)

    def wal2lake(self, *arguments: str, code: int = 0) -> str:
        """Run a command of wal2lake in the job's container and return its output."""
        return self.compose("exec", "-T", "job", "wal2lake", *arguments, *CONFIG, code=code)

    def facts(self, *arguments: str) -> dict[str, Any]:
        """Run a command of wal2lake with ``--json`` and return what it prints."""
        found: dict[str, Any] = json.loads(self.wal2lake(*arguments, "--json"))
        return found

    def assert_equal(self) -> None:
        """Wait until the lake has every commit, and compare it with the source."""
        self.wal2lake("sync", "--timeout", "600")
        assert self.facts("verify")["equal"]

    def connect(self) -> psycopg.Connection[Any]:
        """Connect to the source as its superuser."""
        url = f"postgresql://postgres:{self.password}@127.0.0.1:{self.ports['postgres']}/app"
        return psycopg.connect(url, autocommit=True)

    def shell(self, service: str, script: str) -> str:
        """Run a shell script in a service's container and return its output."""
        return self.compose("exec", "-T", service, "sh", "-c", script)

    def execute(self, *statements: str) -> None:
        """Execute statements at the source, each as its own transaction."""
        with self.connect() as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def container(self, service: str) -> dict[str, Any]:
        """Return what the engine knows of a service's container, also of one that has ended."""
        [identity] = self.compose("ps", "--all", "--quiet", service).split()
        return inspected(identity)

    def address(self, service: str) -> str:
        """Return the address of a service's container; empty if it does not run."""
        networks = self.container(service)["NetworkSettings"]["Networks"]
        [address] = [str(network["IPAddress"]) for network in networks.values()]
        return address

    def remove_volume(self, volume: str) -> None:
        """Remove a volume that no container has."""
        subprocess.run(["docker", "volume", "rm", f"{self.name}_{volume}"], check=True)

    def crash(self, service: str) -> None:
        """Kill the first process of a service; the engine starts it again by its policy."""
        before = self.container(service)
        os.kill(before["State"]["Pid"], signal.SIGKILL)
        until(lambda: self._restarted(service, before["RestartCount"]), 120)

    def _restarted(self, service: str, before: int) -> bool:
        now = self.container(service)
        return bool(now["RestartCount"] > before and now["State"]["Running"])


def inspected(what: str) -> dict[str, Any]:
    """Return what the engine knows of a container or an image."""
    done = subprocess.run(["docker", "inspect", what], capture_output=True, text=True, check=True)
    [found] = json.loads(done.stdout)
    return dict(found)


def until_healthy(stack: Stack, service: str) -> None:
    """Wait until a service that was started again is healthy."""

    def is_healthy() -> bool:
        return bool(stack.container(service)["State"]["Health"]["Status"] == "healthy")

    until(is_healthy, UP_SECONDS)


@contextmanager
def stack_for(
    name: str,
    folder: Path,
    *more: str,
    tree: Path = ROOT,
    environ: Mapping[str, str] | None = None,
) -> Iterator[Stack]:
    """Yield a stack that is not up yet, and leave nothing of it but its logs in the folder."""
    if not engine.answers():
        pytest.fail("no Docker engine answers: run make test-stack, which starts one")
    ports = folder / "ports.yaml"
    found = Stack(name=name, override=ports, more=more, tree=tree, environ=environ or {})
    found.compose("--profile", "*", "down", "--volumes", "--remove-orphans")
    try:
        yield found
    finally:
        (folder / "logs.txt").write_text(found.run("logs", "--no-color").stdout)
        found.run("cp", "job:/state/logs", str(folder / "logs"))  # for whoever looks into a failure
        found.compose("--profile", "*", "down", "--volumes", "--remove-orphans")
