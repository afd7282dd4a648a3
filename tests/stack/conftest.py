"""What the tests of the embedded stack share: a configuration, a driver process, a look at ps."""

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
    """A shell lets what it runs in the background ignore the signal, and children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    """All embedded, state below a directory that only we may enter."""
    path = tmp_path / "wal2lake.yaml"
    values = {"source": {"tables": ["public.*"]}, "lake": {"path": "lake"}, "state_dir": "state"}
    path.write_text(yaml.safe_dump(values))
    return path


@pytest.fixture
def config(config_file: Path) -> Config:
    return load(config_file, {})


@pytest.fixture
def state(config: Config) -> Iterator[StateDir]:
    """The state directory; a test that fails half-way leaves no process either."""
    made = StateDir(config.state_dir.resolve())
    made.create()
    yield made
    cleanup.clean(made)


@pytest.fixture
def any_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests that start none: they run also where there is none."""
    java = Java(path=Path("/nowhere/java"), major=17)
    monkeypatch.setattr(prerequisites, "find_java", lambda: java)


@contextmanager
def supervised(config_file: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A supervisor without a job, in a process of its own, as ``up`` would be."""
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
    """Command lines of what runs for this state directory, by two signs, ours not asked."""
    found = []
    for process in psutil.process_iter():
        try:
            line = " ".join(process.cmdline())
            if f"{state.root}/" in line or process.environ().get(STATE_VARIABLE) == str(state.root):
                found.append(line[:200])
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found
