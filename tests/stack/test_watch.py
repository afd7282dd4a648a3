"""Restarts happen with growing pauses, are reported, and stop where a person has to act."""

import itertools
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from cdc import http_client
from cdc.config import Config
from cdc.errors import POLICY, CdcError, ErrorKind
from cdc.stack.embedded import EmbeddedStack
from cdc.stack.process.process import Command, ProcessIdentity
from cdc.stack.process.stack_report import READY, StackReport, read, reported_error, supervisor
from cdc.stack.servers.job import JobProcess
from cdc.stack.servers.patience import START_SECONDS, Patience
from cdc.stack.supervise.connector_watch import Absence, ConnectorWatch
from cdc.stack.supervise.watch import Backoff, Watch, member_of
from cdc.state import job_state
from cdc.state.directory import StateDir
from cdc.state.job_state import JobState
from tests.waiting import until


@dataclass(slots=True)
class Scripted:
    """A server that runs the next Python one-liner at each start."""

    name: str
    scripts: Iterator[str]
    ready: bool = True
    prepared: int = 0

    def prepare(self) -> None:
        self.prepared += 1

    def command(self) -> Command:
        arguments = (sys.executable, "-c", next(self.scripts))
        return Command(arguments=arguments, directory=Path("/"))

    def is_ready(self) -> bool:
        return self.ready


@dataclass(slots=True)
class SilentConnector(ConnectorWatch):
    """A watch of a connector that never has anything to report."""

    connect_url: str = ""
    name: str = ""
    absence: Absence = field(default_factory=lambda: Absence(lambda: None))

    def look(self, now: float) -> str | None:
        del now
        return None


@dataclass(slots=True)
class Scene:
    """Runs a stack of scripted servers, with a clock that the test moves."""

    stack: EmbeddedStack
    report: StackReport
    now: float = 0.0
    said: list[str] = field(default_factory=list)

    def watch(self, *servers: Scripted) -> Watch:
        """Start the servers and return a watch of them, which has not looked yet."""
        for server in servers:
            self.stack.servers[server.name] = server
            self.stack.spawn(server)
            self.report.members[server.name] = member_of(self.stack, server.name)
        self.stack.say = self.said.append
        return Watch(self.stack, self.report, SilentConnector(), clock=lambda: self.now)

    def end(self, name: str) -> None:
        """Wait until the server has ended."""
        until(lambda: self.stack.processes[name].exit_code() is not None, 20)


@pytest.fixture
def scene(config: Config, state: StateDir, any_java: None) -> Iterator[Scene]:
    del any_java
    with EmbeddedStack(config) as stack:
        yield Scene(stack, StackReport(state=state, supervisor=ProcessIdentity.of(1)))


def test_pauses_grow_until_a_server_has_run_for_long() -> None:
    backoff = Backoff()
    assert [backoff.after_death(1) for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]
    assert backoff.after_death(3600) == 1
    assert backoff.after_death(1) == 2


# A server that runs until it is stopped; if the test fails to stop it, it ends by itself.
STAY = "import time; time.sleep(600)"


def test_a_dead_server_is_started_again_after_a_pause(scene: Scene) -> None:
    server = Scripted("kafka", itertools.chain(["exit(5)"], itertools.repeat(STAY)))
    watch = scene.watch(server)
    scene.end("kafka")
    watch.look()
    assert scene.report.members["kafka"].state == "waiting"
    assert "exit code 5" in scene.said[-1]

    scene.now = 0.9
    watch.look()
    assert server.prepared == 1

    scene.now = 1.1
    server.ready = False
    watch.look()
    watch.look()
    member = scene.report.members["kafka"]
    assert (member.state, member.restarts, server.prepared) == ("starting", 1, 2)

    server.ready = True
    watch.look()
    assert scene.report.members["kafka"].state == "running"
    assert scene.said[-1] == "kafka is ready again"


def test_a_server_that_never_gets_ready_is_stopped_and_restarted(scene: Scene) -> None:
    server = Scripted("connect", itertools.chain(["exit(1)"], itertools.repeat(STAY)))
    watch = scene.watch(server)
    scene.end("connect")
    watch.look()
    server.ready, scene.now = False, 2
    watch.look()
    scene.now = 1000
    watch.look()
    assert "was not ready" in scene.said[-1]
    assert scene.stack.processes["connect"].exit_code() is not None
    scene.now = 2000
    watch.look()
    assert scene.report.members["connect"].restarts == 2


@pytest.mark.parametrize("kind", [ErrorKind.CHAIN_BROKEN, ErrorKind.CONFIG])
def test_a_job_that_would_fail_again_stays_down(scene: Scene, kind: ErrorKind) -> None:
    code = POLICY[kind].exit_code
    script = f"import sys; print('error: the slot is gone', file=sys.stderr); exit({code})"
    watch = scene.watch(Scripted("job", itertools.repeat(script)))
    scene.end("job")
    watch.look()
    scene.now = 1000
    watch.look()
    member = scene.report.members["job"]
    assert (member.state, member.restarts) == ("failed", 0)
    assert "the slot is gone" in member.reason


@pytest.mark.parametrize(
    ("code", "is_said"), [(POLICY[ErrorKind.UNREACHABLE].exit_code, True), (-9, False)]
)
def test_what_a_job_says_at_its_end_is_told_with_the_restart(
    scene: Scene, code: int, is_said: bool
) -> None:
    """One that was killed said its last words of something else."""
    end = f"exit({code})" if code > 0 else f"os.kill(os.getpid(), {-code})"
    script = f"import os; print('error: the store is away', flush=True); {end}"
    watch = scene.watch(Scripted("job", itertools.repeat(script)))
    scene.end("job")
    watch.look()

    assert f"ended with exit code {code}" in scene.said[-1]
    assert ("the store is away" in scene.said[-1]) is is_said
    assert scene.said[-1].endswith("restarting in 1 s")


def test_a_job_that_was_killed_is_started_again(scene: Scene) -> None:
    script = "import os; os.kill(os.getpid(), 9)"
    watch = scene.watch(Scripted("job", itertools.chain([script], itertools.repeat(STAY))))
    scene.end("job")
    watch.look()
    scene.now = 2
    watch.look()
    assert scene.report.members["job"].restarts == 1


def test_a_start_that_fails_is_tried_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    server = Scripted("registry", itertools.chain(["exit(1)"], itertools.repeat(STAY)))
    watch = scene.watch(server)
    scene.end("registry")
    watch.look()
    monkeypatch.setattr(Scripted, "prepare", _no_kafka)
    scene.now = 2
    watch.look()
    assert "kafka is away" in scene.said[-1]
    monkeypatch.undo()
    scene.now = 100
    watch.look()
    assert scene.stack.processes["registry"].exit_code() is None


def _no_kafka(_server: Scripted) -> None:
    raise CdcError(ErrorKind.UNREACHABLE, "kafka is away")


def test_the_report_is_written_for_other_processes(scene: Scene, state: StateDir) -> None:
    scene.watch(Scripted("kafka", itertools.repeat(STAY)))
    scene.report.event("kafka is ready")
    scene.report.enter(READY)
    said = read(state)
    assert said["phase"] == "ready"
    assert said["processes"]["kafka"]["pid"] == scene.stack.processes["kafka"].pid
    assert said["events"][0]["what"] == "kafka is ready"
    assert supervisor(state) == ProcessIdentity.of(1)
    scene.report.fail(CdcError(ErrorKind.DISK_FULL, "full", detail="d", remedy="r"))
    error = reported_error(state)
    assert error is not None
    assert (error.kind, error.message, error.remedy) == (ErrorKind.DISK_FULL, "full", "r")


def connect_says(monkeypatch: pytest.MonkeyPatch, *states: str) -> list[tuple[str, dict[str, str]]]:
    """Let a worker report one task state after the other; return the restarts it gets."""
    restarts: list[tuple[str, dict[str, str]]] = []
    answers = iter(states)

    def get(url: str, path: str, **_options: object) -> httpx.Response:
        state = next(answers)
        tasks = [{"id": 0, "state": state, "trace": "java.net.ConnectException: gone\n\tat"}]
        body = {"connector": {"state": "RUNNING"}, "tasks": tasks}
        return httpx.Response(200, json=body, request=httpx.Request("GET", url + path))

    def request(
        _method: str, url: str, path: str, *, params: dict[str, str], **_options: object
    ) -> None:
        restarts.append((url + path, params))

    monkeypatch.setattr(http_client, "get", get)
    monkeypatch.setattr(http_client, "request", request)
    return restarts


def test_a_failed_task_is_restarted_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    restarts = connect_says(monkeypatch, "RUNNING", "FAILED", "FAILED", "RUNNING")
    watch = ConnectorWatch("http://c", "wal2lake", Absence(lambda: True))
    assert watch.look(0) is None
    assert watch.look(1) is None  # too soon to ask again
    assert "restarted: gone" in str(watch.look(5))
    assert restarts[0][0] == "http://c/connectors/wal2lake/restart"
    assert restarts[0][1]["onlyFailed"] == "true"
    assert watch.look(14) is None  # the pause after a failure is longer
    assert watch.look(15) is not None
    assert watch.look(100) is None
    assert len(restarts) == 2


@pytest.mark.parametrize(
    ("said", "there", "restarts"),
    [
        ("RUNNING", False, 1),
        ("RUNNING", True, 0),
        ("RUNNING", None, 0),  # the source does not answer
        ("PAUSED", False, 0),
    ],
)
def test_an_absent_connector_that_is_reported_running_is_restarted(
    monkeypatch: pytest.MonkeyPatch, said: str, there: bool | None, restarts: int
) -> None:
    done = connect_says(monkeypatch, *[said] * 40)
    watch = ConnectorWatch("http://c", "wal2lake", Absence(lambda: there))
    told = [watch.look(5.0 * second) for second in range(40)]  # for 200 s
    assert len([text for text in told if text is not None]) == len(done) == restarts
    assert all(parameters["onlyFailed"] == "false" for _, parameters in done)


def test_a_connector_that_returns_in_time_is_not_restarted(monkeypatch: pytest.MonkeyPatch) -> None:
    done = connect_says(monkeypatch, *["RUNNING"] * 80)
    there = itertools.cycle([False, False, False, True])
    watch = ConnectorWatch("http://c", "wal2lake", Absence(lambda: next(there)))
    assert [watch.look(5.0 * second) for second in range(80)] == [None] * 80
    assert done == []


def test_a_start_may_take_long_while_it_makes_progress(tmp_path: Path) -> None:
    job = JobProcess(StateDir(tmp_path), tmp_path / "wal2lake.yaml")
    job.state.run.mkdir(parents=True)
    ProcessIdentity.of(os.getpid()).write(job.state.run / "job.json")
    clock = 0.0
    patience = Patience(job, clock=lambda: clock)
    for steps in range(1, 20):  # each after half of the patience
        job_state.write(tmp_path, JobState.of_this_process("starting", datetime.now(UTC), steps))
        clock += START_SECONDS / 2
        assert not patience.is_over()
    clock += START_SECONDS
    assert not patience.is_over()
    clock += 1
    assert patience.is_over()


def test_a_server_that_reports_no_progress_has_a_fixed_time() -> None:
    clock = 0.0
    patience = Patience(Scripted("one", iter(())), clock=lambda: clock)
    clock = START_SECONDS + 1.0
    assert patience.is_over()


def test_a_connector_whose_slot_somebody_else_moved_is_not_restarted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    restarts = connect_says(monkeypatch, "FAILED")

    def exclude_unreadable(*, at_an_event: bool) -> list[str]:
        del at_an_event
        raise CdcError(ErrorKind.CHAIN_BROKEN, "slot wal2lake was moved on by somebody else")

    watch = ConnectorWatch("http://c", "wal2lake", Absence(lambda: True), exclude_unreadable)
    said = str(watch.look(0))
    assert "is not restarted: slot wal2lake was moved on" in said
    assert restarts == []


def test_a_table_that_keeps_a_connector_from_starting_is_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    restarts = connect_says(monkeypatch, "FAILED", "FAILED", "FAILED")
    kept = iter([["shop.twins"], []])

    def exclude_unreadable(*, at_an_event: bool) -> list[str]:
        assert not at_an_event
        for found in kept:
            return found
        raise CdcError(ErrorKind.UNREACHABLE, "no Postgres answers")

    watch = ConnectorWatch("http://c", "wal2lake", Absence(lambda: True), exclude_unreadable)
    assert "continues without shop.twins" in str(watch.look(0))
    assert restarts == []  # its new settings start it
    assert "is restarted" in str(watch.look(100))
    assert "is restarted" in str(watch.look(200))
    assert len(restarts) == 2
