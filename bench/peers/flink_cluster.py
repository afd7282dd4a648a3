"""Runs a Flink cluster of one job manager and one task manager, as two JVMs started directly."""

import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx

from cdc.errors import CdcError, ErrorKind
from cdc.stack.artifacts.prerequisites import find_java
from cdc.waiting import until

LOOPBACK: Final = "127.0.0.1"
MANAGER: Final = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
WORKER: Final = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
CLIENT: Final = "org.apache.flink.table.client.SqlClient"
START_SECONDS: Final = 180.0
SUBMIT_SECONDS: Final = 300.0
_OPENED: Final = ("lang", "lang.reflect", "io", "net", "nio", "text", "time", "util",
                  "util.concurrent", "util.concurrent.atomic", "util.concurrent.locks")  # fmt: skip
_LOG4J: Final = """\
rootLogger.level = INFO
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %-5p %c{1} %m%n
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Submits SQL to a running cluster, and asks it for its jobs and its worker."""

    root: Path
    jars: list[Path]
    port: int
    pids: dict[str, int]

    def submit(self, statements: str) -> None:
        """Run SQL statements by Flink's client; raises SERVER_FAILED if one fails."""
        file, log = self.root / "job.sql", self.root / "client.log"
        file.write_text(statements)
        line = [*_java(self.jars, "512m", self.root / "conf"), CLIENT, "embedded", "-f", str(file)]
        with log.open("wb") as output:
            done = subprocess.run(line, stdout=output, stderr=output, env=_environment(self.root),
                                  check=False, timeout=SUBMIT_SECONDS)  # fmt: skip
        text = log.read_text(errors="replace")
        if done.returncode or "[ERROR]" in text:
            raise CdcError(ErrorKind.SERVER_FAILED, "Flink refused the job", detail=text[-400:])

    def running_jobs(self) -> int:
        """Return how many jobs run."""
        jobs = self._get("/jobs")["jobs"]
        return sum(job["status"] == "RUNNING" for job in jobs)

    def has_a_worker(self) -> bool:
        """Return whether the task manager has registered."""
        try:
            return bool(self._get("/taskmanagers")["taskmanagers"])
        except httpx.HTTPError:
            return False

    def _get(self, path: str) -> dict[str, list[dict[str, str]]]:
        answer = httpx.get(f"http://{LOOPBACK}:{self.port}{path}", timeout=10)
        found: dict[str, list[dict[str, str]]] = answer.raise_for_status().json()
        return found


@contextmanager
def cluster(root: Path, jars: list[Path], *, slots: int) -> Iterator[Cluster]:
    """Run a cluster in ``root`` for the duration of a ``with`` block."""
    rest, rpc = _free_port(), _free_port()
    _configure(root, rest=rest, rpc=rpc, slots=slots)
    mains = {"job manager": (MANAGER, "640m"), "task manager": (WORKER, "1500m")}
    started: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for name, (main, heap) in mains.items():
            log = (root / f"{name.replace(' ', '-')}.log").open("wb")
            line = [*_java(jars, heap, root / "conf"), main, "--configDir", str(root / "conf")]
            started[name] = subprocess.Popen(line, stdout=log, stderr=log, env=_environment(root))
            log.close()
        pids = {name: process.pid for name, process in started.items()}
        found = Cluster(root=root, jars=jars, port=rest, pids=pids)
        _await_worker(found, started)
        yield found
    finally:
        for process in reversed(started.values()):
            process.terminate()
        for process in started.values():
            process.wait()


def _await_worker(found: Cluster, started: Mapping[str, subprocess.Popen[bytes]]) -> None:
    """Wait for the task manager; raises SERVER_FAILED if a process ends, and TIMEOUT."""

    def registered() -> bool:
        if ended := [name for name, process in started.items() if process.poll() is not None]:
            raise CdcError(ErrorKind.SERVER_FAILED, f"Flink's {ended[0]} ended: see its log")
        return found.has_a_worker()

    until(registered, START_SECONDS, "Flink's task manager did not register")


def _configure(root: Path, *, rest: int, rpc: int, slots: int) -> None:
    (root / "conf").mkdir(parents=True)
    settings = {
        "jobmanager.rpc.address": LOOPBACK,
        "jobmanager.rpc.port": rpc,
        "jobmanager.bind-host": LOOPBACK,
        "jobmanager.memory.heap.size": "512m",
        "rest.address": LOOPBACK,
        "rest.port": rest,
        "rest.bind-address": LOOPBACK,
        "taskmanager.host": LOOPBACK,
        "taskmanager.bind-host": LOOPBACK,
        "taskmanager.numberOfTaskSlots": slots,
        # For a process that is started directly: what it may plan with, not what it takes.
        "taskmanager.cpu.cores": slots,
        "taskmanager.memory.framework.heap.size": "128m",
        "taskmanager.memory.framework.off-heap.size": "128m",
        "taskmanager.memory.jvm-metaspace.size": "512m",
        "taskmanager.memory.jvm-overhead.min": "192m",
        "taskmanager.memory.jvm-overhead.max": "192m",
        "taskmanager.memory.task.heap.size": "900m",
        "taskmanager.memory.task.off-heap.size": "0m",
        "taskmanager.memory.managed.size": "128m",
        "taskmanager.memory.network.min": "64m",
        "taskmanager.memory.network.max": "64m",
        "state.backend.type": "hashmap",
        "execution.checkpointing.dir": f"file://{root}/checkpoints",
        "parallelism.default": 1,
    }
    text = "".join(f"{name}: {value}\n" for name, value in settings.items())
    (root / "conf" / "config.yaml").write_text(text)
    (root / "conf" / "log4j.properties").write_text(_LOG4J)


def _java(jars: list[Path], heap: str, conf: Path) -> list[str]:
    opened = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _OPENED]
    path = os.pathsep.join(map(str, [conf, *jars]))
    logging = f"-Dlog4j.configurationFile={conf / 'log4j.properties'}"
    memory = [f"-Xmx{heap}", "-XX:MaxMetaspaceSize=512m", "-XX:MaxDirectMemorySize=512m"]
    return [str(find_java().path), *memory, *opened, logging, "-cp", path]


def _environment(root: Path) -> dict[str, str]:
    return os.environ | {"FLINK_CONF_DIR": str(root / "conf")}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
