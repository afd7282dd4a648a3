"""Log files stay bounded while processes write, and a crash is shown after the next start."""

import itertools
import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from cdc.client.status import status as statuses
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.observe.defects import error_text
from cdc.stack.embedded import EmbeddedStack
from cdc.stack.process import log_files
from cdc.stack.process.log_files import last_crash, rotate
from cdc.stack.process.process import ProcessIdentity, last_lines
from cdc.stack.process.stack_report import READY, STOPPING, StackReport, read, reported_error
from cdc.stack.supervise.supervisor import Steps, supervise
from cdc.state.directory import StateDir
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from tests.stack.test_watch import Scene, Scripted
from tests.waiting import until

CANARY: Final = "canary-7f3a"
LIMIT: Final = 50_000
WRITER: Final = """
import pathlib
for turn in range(8):
    for number in range(300):
        print(f"{{turn}}.{{number}} " + "x" * 100, flush=True)
    pathlib.Path({turn_file!r}).write_text(str(turn))
    pathlib.Path({seen!r}).read_text()
"""
"""Write 300 lines per turn, and wait on a named pipe until the test has seen them."""
ENDPOINTS: Final = Endpoints(source_url="", kafka=Broker(""), connect="", registry="")


@pytest.fixture
def scene(config: Config, state: StateDir, any_java: None) -> Iterator[Scene]:
    del any_java
    with EmbeddedStack(config) as stack:
        yield Scene(stack, StackReport(state=state, supervisor=ProcessIdentity.of(1)))


def test_a_log_is_bounded_while_its_process_writes(
    scene: Scene, state: StateDir, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "MOST_BYTES", LIMIT)
    turn, seen = tmp_path / "turn", tmp_path / "seen"
    os.mkfifo(seen)
    turn.write_text("")
    script = WRITER.format(turn_file=str(turn), seen=str(seen))
    watch = scene.watch(Scripted("kafka", itertools.repeat(script)))
    log, older = state.log("kafka"), state.logs / "kafka.log.1"
    for number in map(str, range(8)):
        until(partial(_has_text, turn, number))
        watch.look()
        assert log.stat().st_size <= LIMIT
        assert not older.exists() or older.stat().st_size <= LIMIT
        seen.write_text(number)
    scene.end("kafka")

    kept = [line.split()[0] for path in (older, log) for line in path.read_text().splitlines()]
    assert kept[-1] == "7.299", "the newest line is there"
    assert kept == [f"7.{number}" for number in range(300 - len(kept), 300)] or len(kept) > 300
    assert not any("\0" in path.read_text() for path in (older, log))


def _has_text(file: Path, text: str) -> bool:
    return file.read_text() == text


def test_every_log_of_the_directory_is_bounded(
    scene: Scene, state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Logs of processes that the supervisor did not start are included, such as its own."""
    monkeypatch.setattr(log_files, "MOST_BYTES", 100)
    for name in ("supervisor", "job", "postgres"):
        state.log(name).write_text("a line of it\n" * 50)
    scene.watch().look()
    sizes = {path.name: path.stat().st_size for path in state.logs.iterdir()}
    names = ("supervisor.log", "job.log", "postgres.log")
    assert set(sizes) == {*names, *(f"{name}.1" for name in names)}
    assert max(sizes.values()) <= 100


def test_a_log_is_emptied_if_the_disk_is_full(
    state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_files, "MOST_BYTES", 100)
    monkeypatch.setattr(shutil, "copyfileobj", _full)
    state.log("job").write_text("a line\n" * 50)
    rotate(state.log("job"))
    assert state.log("job").stat().st_size == 0


def _full(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_lines_of_an_earlier_process_are_not_shown_for_this_one(tmp_path: Path) -> None:
    log = tmp_path / "supervisor.log"
    log.write_text("error: of yesterday\n")
    began = log.stat().st_size
    assert last_lines(log, after=began) == ""
    log.write_text(log.read_text() + "error: of today\n")
    assert last_lines(log, after=began) == "error: of today"


def _steps(said: list[str], error: Exception) -> Steps:
    def establish(_pipeline: Pipeline, _say: object) -> None:
        raise error

    return Steps(
        establish=establish,
        is_at_source=lambda _pipeline: None,
        exclude_unreadable=lambda _pipeline, _at_an_event: (),
        job_config=None,
        on_progress=said.append,
        on_ready=lambda _pipeline: None,
    )


@pytest.fixture
def no_servers(monkeypatch: pytest.MonkeyPatch, any_java: None) -> None:
    del any_java
    monkeypatch.setattr(EmbeddedStack, "start", lambda _stack: ENDPOINTS)


@pytest.mark.usefixtures("no_servers")
def test_a_crash_is_shown_after_the_next_start(
    config: Config, state: StateDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=CANARY):
        supervise(config, _steps([], ValueError(f"{CANARY} of a row")))
    error = reported_error(state)
    assert error is not None
    assert error.kind is ErrorKind.INTERNAL
    assert str(log_files.crash_file(state)) in error.remedy

    said: list[str] = []
    ours = CdcError(ErrorKind.CONFLICT, "another time")
    with pytest.raises(CdcError):
        supervise(config, _steps(said, ours))
    whole = log_files.crash_file(state).read_text()
    assert "in establish" in whole
    assert "ValueError" in last_crash(state)
    assert CANARY not in whole + state.stack_file.read_text()
    monkeypatch.setattr(statuses, "resolve", _not_up)
    assert last_crash(state) == statuses.status(config).crash


def _not_up(_config: Config) -> Pipeline:
    raise CdcError(ErrorKind.UNREACHABLE, "not up")


@pytest.mark.usefixtures("no_servers")
@pytest.mark.parametrize("phase", [READY, STOPPING])
def test_the_next_start_reports_a_killed_supervisor(
    config: Config, state: StateDir, phase: str
) -> None:
    before = StackReport(state=state, supervisor=ProcessIdentity(pid=2**22 + 1, create_time=1.0))
    before.event("job is applying")
    before.enter(phase)
    state.log("supervisor").write_text("its last line\n")

    said: list[str] = []
    with pytest.raises(CdcError):
        supervise(config, _steps(said, CdcError(ErrorKind.CONFLICT, "another time")))
    killed = phase == READY
    assert ("job is applying" in last_crash(state)) is killed
    assert any("crashed" in line for line in said) is killed
    assert any("crashed" in event["what"] for event in read(state)["events"]) is killed
    if killed:
        assert "its last line" in log_files.crash_file(state).read_text()
    assert read(state)["phase"] == "failed"
    assert error_text(CdcError(ErrorKind.CONFLICT, "another time")) == "another time"
