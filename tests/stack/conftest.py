"""Provide a configuration, a supervisor and its processes for tests of the embedded stack."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import yaml

from cdc.config import Config, load
from cdc.stack.artifacts import prerequisites
from cdc.stack.artifacts.prerequisites import Java
from cdc.stack.process import cleanup
from cdc.stack.process.process import STATE_VARIABLE
from cdc.state.directory import StateDir

DRIVER = Path(__file__).with_name("driver.py")


@pytest.fixture(autouse=True)
def _heard() -> Iterator[None]:
    """Handle SIGINT, which a shell makes background jobs ignore and children inherit as ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    """Write a configuration with every server embedded, below a directory only we may enter."""
    path = tmp_path / "wal2lake.yaml"
    values = {"source": {"tables": ["public.*"]}, "lake": {"path": "lake"}, "state_dir": "state"}
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.fixture
def config(config_file: Path) -> Config:
    """Load the configuration, without environment variables."""
    return load(config_file, {})


@pytest.fixture
def state(config: Config) -> Iterator[StateDir]:
    """Create the state directory; at the end stop processes that a failed test left."""
    directory = StateDir(config.state_dir.resolve())
    directory.create()
    yield directory
    cleanup.clean(directory)


@pytest.fixture
def any_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that Java is installed, for tests that do not start it."""
    java = Java(path=Path("/nowhere/java"), major=17, version="")
    monkeypatch.setattr(prerequisites, "find_java", lambda: java)


@contextmanager
def supervised(config_file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a supervisor without a job in a process of its own, like ``up``."""
    with (config_file.parent / "driver.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(DRIVER), str(config_file)], stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def ours(state: StateDir) -> list[str]:
    """Return the command lines of processes of this state directory.

    Finds them by path and by variable, without the code under test.
    """
    lines = []
    for process in psutil.process_iter():
        try:
            line = " ".join(process.cmdline())
            if f"{state.root}/" in line or process.environ().get(STATE_VARIABLE) == str(state.root):
                lines.append(line[:200])
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return lines
