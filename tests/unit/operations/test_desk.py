"""The desk with handlers that run, pause, are cancelled, fail, die, and start again."""

import math
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from cdc.errors import CdcError, ErrorKind
from cdc.lake.files.file_store import StoreError
from cdc.lake.records.operations import Operations
from cdc.lake.upkeep.control_tables import FILES
from cdc.operations.desk.desk import Reporter
from cdc.state import operation_files as files
from cdc.state.operation import Operation, OperationState, Progress, TableResult
from tests.unit.desk_room import ID, Room, operation
from tests.waiting import until


def test_an_operation_runs_and_its_row_is_in_the_lake(room: Room) -> None:
    def copy(asked: Operation, reporter: Reporter) -> None:
        assert asked == operation()
        reporter.tell(phase="reading", table="a.t1", rows=10, chunks=1, rows_expected=40)
        reporter.done(
            TableResult(
                table="a.t1", rows_read=40, added=3, changed=2, swept=1, cut_before=4, cut_after=6
            )
        )

    files.ask(room.folder, operation())
    room.start(copy=copy)
    ended = room.end()

    assert (ended.state, ended.tables_done, ended.tables) == (OperationState.DONE, 1, 1)
    (row,) = room.rows()
    assert row["id"] == ID
    assert (row["command"], row["line"]) == ("copy", "wal2lake copy a.t1")
    assert row["asked_by"] == "ann@host, pid 7"
    assert row["asked_at"] == datetime(2026, 11, 21, 0, 0, 1, 1, UTC)
    assert (row["tables"], row["predicate"], row["mode"]) == (["a.t1"], "id < 3", "in-place")
    assert (row["state"], row["rows_read"], row["rows_added"]) == ("done", 40, 3)
    assert (row["rows_changed"], row["rows_swept"], row["rows_refused"]) == (2, 1, 0)
    assert (row["cut_before"], row["cut_after"]) == (4, 6)
    assert row["ended_at"] >= row["started_at"]
    assert row["seconds"] == ended.seconds
    assert row["outcome"] == "1 table: 40 rows read, 3 added, 2 changed, 1 swept"
    assert row["results"][0]["swept"] == 1


def test_operations_run_one_after_the_other_by_age(room: Room) -> None:
    ran: list[str] = []

    def copy(asked: Operation, _reporter: Reporter) -> None:
        others = [
            files.progress(room.folder, each.id).state for each in files.unfinished(room.folder)
        ]
        assert others.count(OperationState.RUNNING) == 1
        ran.append(asked.id)

    asked = [operation(number) for number in (3, 1, 2)]
    for each in asked:
        files.ask(room.folder, each)
    room.start(copy=copy)

    assert {room.end(each.id).state for each in asked} == {OperationState.DONE}
    assert ran == sorted(each.id for each in asked)


def test_a_running_operation_has_its_row(room: Room) -> None:
    go = threading.Event()

    def wait(_asked: Operation, _reporter: Reporter) -> None:
        assert go.wait(60)

    files.ask(room.folder, operation())
    room.start(copy=wait)
    until(lambda: DeltaTable.is_deltatable(room.record.path))

    (row,) = room.rows()
    assert (row["state"], row["ended_at"], row["outcome"]) == ("running", None, None)
    go.set()
    room.end()
    assert [row["state"] for row in room.rows()] == ["done"]


def test_the_reason_of_a_failure_is_the_error_of_the_handler(room: Room) -> None:
    def fail(_asked: Operation, _reporter: Reporter) -> None:
        raise CdcError(ErrorKind.DISK_FULL, "no room", detail="in x", remedy="make some")

    def break_down(_asked: Operation, reporter: Reporter) -> None:
        reporter.done(TableResult(table="a.t2", rows_read=5))
        raise ZeroDivisionError("by zero\nand more")

    def leave(_asked: Operation, _reporter: Reporter) -> None:
        sys.exit(3)

    def hear_nothing(_asked: Operation, _reporter: Reporter) -> None:
        raise StoreError("read a/b: no answer of the object store")

    commands = ("fail", "break_down", "unknown", "leave", "fine", "hear_nothing")
    for number, command in enumerate(commands, 1):
        files.ask(room.folder, operation(number, command))
    room.start(
        fail=fail,
        break_down=break_down,
        leave=leave,
        fine=lambda _asked, _reporter: None,
        hear_nothing=hear_nothing,
    )
    ends = [room.end(operation(number).id) for number in range(1, 7)]

    assert [end.state.value for end in ends] == [*["failed"] * 4, "done", "failed"]
    kinds = ["disk_full", "internal", "conflict", "internal", "", "unreachable"]
    assert [end.error_kind for end in ends] == kinds
    assert (ends[0].reason, ends[0].remedy) == ("no room; in x", "make some")
    assert ends[1].reason == "internal: ZeroDivisionError"
    assert ends[1].results == (TableResult(table="a.t2", rows_read=5),)
    assert "does not know the command unknown" in ends[2].reason
    assert [row["outcome"] for row in room.rows()] == [end.outcome for end in ends]


def test_pause_resume_and_cancel_at_safe_points(room: Room) -> None:
    passed = threading.Semaphore(0)
    let = threading.Semaphore(0)

    def step(_asked: Operation, reporter: Reporter) -> None:
        reporter.tell(phase="reading", rows=7)
        while True:
            passed.release()
            assert let.acquire(timeout=60)
            reporter.safe_point()

    files.ask(room.folder, operation())
    room.start(copy=step)
    assert passed.acquire(timeout=60)
    files.request_control(room.folder, ID, files.PAUSE)
    assert room.state() is OperationState.RUNNING  # not before a safe point
    let.release()
    until(lambda: room.state() is OperationState.PAUSED)
    assert not passed.acquire(blocking=False)

    files.request_control(room.folder, ID, "")
    assert passed.acquire(timeout=60)
    assert room.state() is OperationState.RUNNING
    assert files.progress(room.folder, ID).rows == 7
    files.request_control(room.folder, ID, files.CANCEL)
    let.release()

    ended = room.end()
    assert (ended.state, ended.error_kind) == (OperationState.CANCELLED, "cancelled")
    assert ended.reason == f"operation {ID} was cancelled"
    assert [row["state"] for row in room.rows()] == ["cancelled"]


def test_a_paused_operation_is_cancelled_without_resuming(room: Room) -> None:
    def rest(_asked: Operation, reporter: Reporter) -> None:
        while True:
            reporter.wait(0.01)

    files.ask(room.folder, operation())
    room.start(copy=rest)
    until(lambda: room.state() is OperationState.RUNNING)
    files.request_control(room.folder, ID, files.PAUSE)
    until(lambda: room.state() is OperationState.PAUSED)
    files.request_control(room.folder, ID, files.CANCEL)

    assert room.end().state is OperationState.CANCELLED


def test_a_waiting_operation_that_is_paused_lets_others_run(room: Room) -> None:
    for number in (1, 2):
        files.ask(room.folder, operation(number))
    files.request_control(room.folder, ID, files.PAUSE)
    room.start(copy=lambda _asked, _reporter: None)

    assert room.end(operation(2).id).state is OperationState.DONE
    assert room.state() is OperationState.WAITING
    files.request_control(room.folder, ID, "")
    assert room.end().state is OperationState.DONE


def test_an_operation_cancelled_before_it_began_has_a_row(room: Room) -> None:
    files.ask(room.folder, operation())
    files.request_control(room.folder, ID, files.CANCEL)
    room.start(copy=lambda _asked, _reporter: pytest.fail("it was begun"))

    until(lambda: DeltaTable.is_deltatable(room.record.path))
    assert [row["state"] for row in room.rows()] == ["cancelled"]


@pytest.mark.parametrize("paused", [False, True])
def test_an_operation_is_run_again_after_the_job_was_stopped(room: Room, paused: bool) -> None:
    runs: list[int] = []

    def endless(_asked: Operation, reporter: Reporter) -> None:
        runs.append(1)
        reporter.tell(table="a.t1", rows=9)
        while True:
            reporter.wait(0.01)

    files.ask(room.folder, operation())
    first = room.start(copy=endless)
    until(lambda: files.progress(room.folder, ID).rows == 9)
    if paused:
        files.request_control(room.folder, ID, files.PAUSE)
        until(lambda: room.state() is OperationState.PAUSED)
    first.stop(60)
    assert not room.state().ended
    assert files.progress(room.folder, ID).starts == 0  # a stop does not count as a crash

    if paused:
        files.request_control(room.folder, ID, "")
    room.start(copy=lambda _asked, _reporter: runs.append(2))
    ended = room.end()
    assert (runs, ended.state, ended.rows) == ([1, 2], OperationState.DONE, 0)
    assert [row["state"] for row in room.rows()] == ["done"]


def test_an_error_while_the_job_stops_does_not_fail_the_operation(room: Room) -> None:
    begun = threading.Event()

    def torn(_asked: Operation, reporter: Reporter) -> None:
        begun.set()
        try:
            while True:
                reporter.wait(0.01)
        finally:
            raise RuntimeError("the session is gone")

    files.ask(room.folder, operation())
    desk = room.start(copy=torn)
    assert begun.wait(60)
    desk.stop(60)

    assert room.state() is OperationState.RUNNING


def test_progress_is_written_seldom_and_a_new_phase_at_once(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    reporter = Reporter(
        room.folder, Progress(id=ID, state=OperationState.RUNNING), threading.Event()
    )

    def written(rows: int) -> int:
        reporter.tell(rows=rows)
        return files.progress(room.folder, ID).rows

    monkeypatch.setattr("cdc.operations.desk.reporter.WRITE_SECONDS", math.inf)
    assert [written(rows) for rows in (1, 2, 3)] == [1, 1, 1]
    monkeypatch.setattr("cdc.operations.desk.reporter.WRITE_SECONDS", 0)
    assert [written(rows) for rows in (4, 5)] == [4, 5]

    monkeypatch.setattr("cdc.operations.desk.reporter.WRITE_SECONDS", math.inf)
    reporter.tell(phase="reading", table="a.t1", rows=6, rows_expected=10)
    assert files.progress(room.folder, ID).rows == 6
    reporter.tell(phase="comparing")
    now = files.progress(room.folder, ID)
    assert (now.phase, now.rows, now.rows_before, now.table) == ("comparing", 6, 6, "a.t1")
    reporter.tell(table="a.t2")
    now = files.progress(room.folder, ID)
    assert (now.table, now.rows, now.rows_expected) == ("a.t2", 0, None)


def test_many_operations_stay_a_few_files(tmp_path: Path) -> None:
    record = Operations(str(tmp_path / "operations"))
    for number in range(FILES // 2 + 5):
        asked = operation(number)
        record.begin(asked)
        record.end(asked, Progress(id=asked.id, state=OperationState.DONE))

    assert [row["state"] for row in record.rows()] == ["done"] * (FILES // 2 + 5)
    assert len(DeltaTable(tmp_path / "operations").file_uris()) <= FILES
