"""A command that follows an operation shows its progress and exits as the operation ends."""

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner

from cdc.cli import app
from cdc.cli.show import bar
from cdc.cli.show.follow_operation import ask_and_follow, follow_operation, new_operation
from cdc.config import Config, load
from cdc.errors import POLICY, CdcError, ErrorKind
from cdc.lake.layout import operations_path
from cdc.lake.records.operations import Operations
from cdc.operations.desk.desk import Desk, Handler, Reporter
from cdc.state import job_state
from cdc.state import operation_files as files
from cdc.state.job_state import JobState
from cdc.state.operation import Operation, OperationState, Progress, TableResult
from tests.unit.desk_room import RUNNING

SLEEP = "cdc.cli.show.follow_operation.time.sleep"
PAUSE = threading.Event()  # never set; waiting on it passes time in tests that replace sleep


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Capture the logs: the desk in this process logs to the stdout that the command prints to."""
    with capture_logs():
        yield


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "wal2lake.yaml"
    file.write_text("source: {tables: [shop.*]}\nlake: {path: lake}\n")
    return file


@pytest.fixture
def config(path: Path) -> Config:
    return load(path, {})


def say_alive(config: Config, *, alive: bool = True) -> None:
    """Pretend that this process is the job."""
    started_at = datetime.now(UTC).isoformat()
    config.state_dir.mkdir(exist_ok=True)
    state = "applying" if alive else "stopped"
    job_state.write(config.state_dir, JobState(pid=os.getpid(), state=state, started_at=started_at))


def copy(_asked: Operation, reporter: Reporter) -> None:
    reporter.tell(phase="reading", table="shop.orders", rows_expected=4)
    reporter.tell(rows=4, chunks=1)
    reporter.done(TableResult(table="shop.orders", rows_read=4, changed=1, cut_after=8))


def wait(_asked: Operation, reporter: Reporter) -> None:
    reporter.tell(phase="waiting for the cut")
    while True:
        reporter.wait(0.01)


def fail(_asked: Operation, _reporter: Reporter) -> None:
    raise CdcError(ErrorKind.DISK_FULL, "no room", remedy="make some")


@pytest.fixture
def job(config: Config) -> Iterator[Desk]:
    """Run a desk in this process, which counts as the job."""
    say_alive(config)
    handlers: dict[str, Handler] = {"copy": copy, "fail": fail, "wait": wait}
    desk = Desk(config.state_dir, Operations(operations_path(config)), handlers)
    desk.start()
    yield desk
    desk.stop(60)


def asked(command: str, *tables: str) -> Operation:
    return new_operation(command, tables or ("shop.orders",))


def wal2lake(path: Path, *arguments: str) -> Any:  # noqa: ANN401 - click's result
    return CliRunner().invoke(app, [*arguments, "--config", str(path)])


@pytest.mark.usefixtures("job")
def test_following_ends_with_the_outcome(
    config: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    ask_and_follow(config, asked("copy"), as_json=False, detach=False)

    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("copy is done: 1 table: 4 rows read, 1 changed, ")


@pytest.mark.usefixtures("job")
def test_json_is_an_object_per_line_and_the_last_is_the_outcome(
    config: Config, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = asked("wait")
    files.ask(config.state_dir, operation)

    def cancel(_seconds: float) -> None:
        PAUSE.wait(0.01)
        if files.progress(config.state_dir, operation.id).phase == "waiting for the cut":
            files.request_control(config.state_dir, operation.id, files.CANCEL)
            monkeypatch.setattr(SLEEP, PAUSE.wait)

    monkeypatch.setattr(SLEEP, cancel)
    with pytest.raises(CdcError) as raised:
        follow_operation(config, operation.id, as_json=True, detach=False)

    assert raised.value.kind is ErrorKind.CANCELLED
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {line["id"] for line in lines} == {operation.id}
    assert len(lines) > 1
    assert all(line["job_alive"] for line in lines[:-1])
    assert lines[-1]["state"] == "cancelled"
    assert lines[-1]["results"] == []
    assert lines[-1]["remedy"] == raised.value.remedy


@pytest.mark.usefixtures("job")
def test_a_failure_has_its_kind_and_remedy(
    config: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CdcError) as raised:
        ask_and_follow(config, asked("fail"), as_json=True, detach=False)

    assert raised.value.kind is ErrorKind.DISK_FULL
    assert (raised.value.message, raised.value.remedy) == ("no room", "make some")
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["error_kind"] == "disk_full"


def test_a_detached_command_prints_the_id_and_the_operation_continues(
    job: Desk, config: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    operation = asked("copy")
    ask_and_follow(config, operation, as_json=True, detach=True)
    assert json.loads(capsys.readouterr().out) == {"id": operation.id, "state": "waiting"}

    follow_operation(config, operation.id, as_json=False, detach=False)
    job.stop(60)


def test_no_operation_is_requested_from_a_stopped_job(config: Config) -> None:
    with pytest.raises(CdcError, match="the job is not running") as raised:
        ask_and_follow(config, asked("copy"), as_json=False, detach=False)

    assert (raised.value.kind, raised.value.remedy) == (ErrorKind.UNREACHABLE, "wal2lake up")
    assert files.all_operations(config.state_dir) == []


def test_a_stopped_job_is_reported_and_waited_for(
    config: Config, capsys: pytest.CaptureFixture[str]
) -> None:
    operation = asked("copy")
    files.ask(config.state_dir, operation)
    say_alive(config, alive=False)
    with pytest.raises(CdcError) as raised:
        follow_operation(config, operation.id, as_json=False, detach=False, timeout=0)

    assert POLICY[raised.value.kind].exit_code == 11
    assert "wal2lake up" in raised.value.remedy
    assert capsys.readouterr().out.splitlines() == [bar.NO_JOB]


def test_following_continues_when_the_job_returns(
    config: Config, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    operation = asked("copy")
    files.ask(config.state_dir, operation)
    desks: list[Desk] = []

    def come_back(_seconds: float) -> None:
        PAUSE.wait(0.01)
        if not desks:
            say_alive(config)
            record = Operations(operations_path(config))
            desks.append(Desk(config.state_dir, record, {"copy": copy}))
            desks[0].start()

    monkeypatch.setattr(SLEEP, come_back)
    follow_operation(config, operation.id, as_json=False, detach=False)
    desks[0].stop(60)

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == bar.NO_JOB
    assert lines[-1].startswith("copy is done")


@pytest.mark.usefixtures("job")
def test_ctrl_c_leaves_the_operation_running_and_prints_how_to_follow_it(
    path: Path, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    operation = asked("wait")
    files.ask(config.state_dir, operation)

    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SLEEP, interrupt)
    result = wal2lake(path, "operations", operation.id, "--follow")

    assert result.exit_code == 130
    assert f"wal2lake operations {operation.id}" in result.stderr
    assert f"wal2lake cancel {operation.id}" in result.stderr
    assert files.control_request(config.state_dir, operation.id) == ""
    assert not files.progress(config.state_dir, operation.id).state.ended


def test_operations_lists_files_and_rows_newest_first(path: Path, config: Config) -> None:
    record = Operations(operations_path(config))
    old, failed, new = (
        replace(asked("copy", f"shop.t{number}"), id=f"id{number}", asked_at=f"{moment}+00:00")
        for number, moment in enumerate(
            ("2026-11-20T00:00:00", "2026-11-21T00:00:00", "2026-11-21T00:00:01")
        )
    )
    results = (TableResult(table="shop.t0", rows_read=3),)
    record.end(old, Progress(id=old.id, state=OperationState.DONE, results=results))
    files.ask(config.state_dir, failed)
    reason = Progress(id=failed.id, state=OperationState.FAILED, reason="no room", remedy="more")
    files.write_progress(config.state_dir, reason)
    record.begin(failed)  # the lake does not have its end yet
    files.ask(config.state_dir, new)
    files.write_progress(config.state_dir, replace(RUNNING, id=new.id))

    found = json.loads(wal2lake(path, "operations", "--json").stdout)
    assert [(each["id"], each["state"]) for each in found] == [
        (new.id, "running"),
        (failed.id, "failed"),
        (old.id, "done"),
    ]
    assert found[0]["progress"]["eta_seconds"] == 11
    assert found[1]["outcome"] == "no room; remedy: more"
    assert found[2]["results"][0]["rows_read"] == 3

    plain = wal2lake(path, "operations").stdout
    assert [plain.index(each.id) for each in (new, failed, old)] == sorted(
        plain.index(each.id) for each in (new, failed, old)
    )
    one = wal2lake(path, "operations", old.id).stdout
    assert "outcome    1 table: 3 rows read" in one
    assert "shop.t0" in one
    so_far = wal2lake(path, "operations", new.id).stdout
    assert "reading, 12 chunks, 450,000 of 1,000,000 rows" in so_far
    with pytest.raises(CdcError, match="there is no operation nobody"):
        raise wal2lake(path, "operations", "nobody").exception


def test_operations_are_readable_by_sql_and_status(path: Path, config: Config) -> None:
    operation = asked("copy")
    Operations(operations_path(config)).begin(operation)
    files.ask(config.state_dir, operation)
    files.write_progress(config.state_dir, replace(RUNNING, id=operation.id))

    say_alive(config)
    rows = wal2lake(path, "sql", "--json", "select id, tables from wal2lake.operations").stdout
    assert json.loads(rows) == {"id": operation.id, "tables": ["shop.orders"]}
    (found,) = json.loads(wal2lake(path, "status", "--json").stdout)["operations"]
    assert (found["id"], found["phase"], found["eta_seconds"]) == (operation.id, "reading", 11)
    assert (
        f"operation {operation.id}: copy shop.orders, running: reading,"
        " 450,000 of 1,000,000 rows, 11 s left\n"
    ) in wal2lake(path, "status").stdout


def test_pause_resume_and_cancel_apply_to_the_only_operation(path: Path, config: Config) -> None:
    for command in ("pause", "resume", "cancel"):
        with pytest.raises(CdcError, match="no operation is under way"):
            raise wal2lake(path, command).exception

    operation = asked("copy")
    files.ask(config.state_dir, operation)
    files.write_progress(config.state_dir, replace(RUNNING, id=operation.id))
    with pytest.raises(CdcError, match="is not paused"):
        raise wal2lake(path, "resume").exception
    said = wal2lake(path, "pause").stdout
    assert "will pause at its next safe point" in said
    assert "the job is not running" in said
    assert files.control_request(config.state_dir, operation.id) == "pause"
    assert wal2lake(path, "resume", operation.id).exit_code == 0
    assert files.control_request(config.state_dir, operation.id) == ""
    assert json.loads(wal2lake(path, "cancel", "--json").stdout)["wish"] == "cancel"

    files.ask(config.state_dir, asked("copy", "shop.items"))
    with pytest.raises(CdcError, match="2 operations are under way") as raised:
        raise wal2lake(path, "pause").exception
    assert operation.id in raised.value.detail
    for name in ("nobody", "../x"):
        with pytest.raises(CdcError, match="there is no operation") as raised:
            raise wal2lake(path, "cancel", name).exception
        assert raised.value.kind is ErrorKind.CONFIG


def test_a_new_operation_has_its_requester_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/x/wal2lake", "resnapshot", "--where", "id < 3"])
    made = new_operation("resnapshot", ["a.b"], {"where": "id < 3"})

    assert made.line == "wal2lake resnapshot --where 'id < 3'"
    assert made.asked_by.endswith(f", pid {os.getpid()}")
    asked_at = datetime.fromisoformat(made.asked_at)
    assert made.id.startswith(f"{asked_at:%Y%m%dT%H%M%S}-")
    assert new_operation("resnapshot", []).id != made.id
