"""Finds a Docker engine, or starts one, and the Compose that goes with it.

An engine that is started here keeps its images in wal2lake's cache, so the next one has them.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import docker
import psutil
from docker.errors import DockerException

from cdc.errors import CdcError, ErrorKind
from cdc.stack.artifacts.lock_file import cache_dir
from cdc.waiting import poll, until

_START_SECONDS: Final = 60
_STOP_SECONDS: Final = 60
_PACKAGES: Final = ("docker.io", "debootstrap")


def home() -> Path:
    """Return the folder of an engine that is started here."""
    return cache_dir() / "engine"


def answers() -> bool:
    """Return whether an engine answers."""
    try:
        docker.from_env(timeout=5).ping()
    except DockerException:
        return False
    return True


def why_none() -> str | None:
    """Return why there is no engine and none can be started here; None if there is or can be."""
    if answers():
        return None
    if not sys.platform.startswith("linux"):
        return "no Docker engine answers, and only on Linux one can be started"
    if os.geteuid() != 0:
        return "no Docker engine answers, and only root can start one"
    if shutil.which("dockerd") is None and shutil.which("apt-get") is None:
        return "no Docker engine answers, and there is no apt-get to install one"
    return None


@contextmanager
def running() -> Iterator[None]:
    """Hold an engine; stop it afterwards if it was started for that."""
    if answers():
        yield
        return
    start()
    try:
        yield
    finally:
        stop()


def start() -> None:
    """Start an engine that outlives this process; raise PREREQUISITE if that is impossible."""
    if (why := why_none()) is not None:
        raise CdcError(ErrorKind.PREREQUISITE, why, remedy="install and start a Docker engine")
    install(*_PACKAGES)
    home().mkdir(parents=True, exist_ok=True)
    with (home() / "dockerd.log").open("ab") as log:
        process = subprocess.Popen(
            ["dockerd", "--data-root", home() / "data", "--pidfile", home() / "dockerd.pid"],
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    ended = poll(
        lambda: answers() or process.poll() is not None, bool, every=0.2, seconds=_START_SECONDS
    )
    if not ended or process.poll() is not None:
        process.kill()
        raise CdcError(
            ErrorKind.SERVER_FAILED,
            "the Docker engine did not start",
            detail=_last_line(home() / "dockerd.log"),
            remedy=f"see {home() / 'dockerd.log'}",
        )


def stop() -> None:
    """Stop the engine that ``start`` has started; do nothing if there is none."""
    file = home() / "dockerd.pid"
    if not file.exists():
        return
    pid = int(file.read_text())
    if psutil.pid_exists(pid) and psutil.Process(pid).name() == "dockerd":
        os.kill(pid, signal.SIGTERM)
        until(lambda: not _runs(pid), _STOP_SECONDS, "the Docker engine did not stop")


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def install(*packages: str) -> None:
    """Install Debian packages whose commands are missing."""
    commands = {"docker.io": "dockerd"}
    missing = [name for name in packages if shutil.which(commands.get(name, name)) is None]
    if missing:
        quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        run("apt-get", "-qq", "update", environment=quiet)
        run(
            "apt-get",
            "-qq",
            "install",
            "--no-install-recommends",
            "-y",
            *missing,
            environment=quiet,
        )


def run(*command: str | Path, environment: dict[str, str] | None = None) -> str:
    """Run a command and return its output; raise SERVER_FAILED with its last line."""
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode:
        words = " ".join(map(str, command[:3]))
        detail = (done.stderr or done.stdout).strip()[-800:]
        raise CdcError(ErrorKind.SERVER_FAILED, f"{words} failed", detail=detail)
    return done.stdout


def _last_line(file: Path) -> str:
    return (file.read_text(errors="replace").strip().splitlines() or [""])[-1]
