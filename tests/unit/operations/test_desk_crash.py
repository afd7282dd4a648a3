"""The next desk continues or ends the operations that a crashed job has left."""

import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from deltalake import DeltaTable

from cdc.operations.desk.desk import MOST_STARTS, Desk, Reporter
from cdc.state import operation_files as files
from cdc.state.operation import Operation, OperationState, Progress, TableResult
from tests.unit.desk_room import ID, Room, operation
from tests.waiting import until

KILLED = """
import os, pathlib, signal, sys
from cdc.lake.records.operations import Operations
from cdc.operations.desk.desk import Desk
from cdc.state.operation import AnnouncedCommit, TableResult

def die(asked, reporter):
    reporter.done(TableResult(table="a.t1", rows_read=8))
    reporter.tell(phase="reading", table="a.t2", rows=5)
    result = TableResult(table="a.t2", swept=3)
    reporter.write_fields(commit=AnnouncedCommit(reading=4, result=result))
    os.kill(os.getpid(), signal.SIGKILL)

folder = pathlib.Path(sys.argv[1])
Desk(folder, Operations(str(folder / "lake" / "operations")), {"copy": die}).start().join()
"""


def test_the_operation_of_a_killed_job_is_run_again(room: Room) -> None:
    files.ask(room.folder, operation())
    died = subprocess.run([sys.executable, "-c", KILLED, str(room.folder)], check=False, timeout=60)
    assert died.returncode == -9
    left = files.progress(room.folder, ID)
    assert (left.state, left.rows, left.starts) == (OperationState.RUNNING, 5, 1)

    def go_on(_asked: Operation, reporter: Reporter) -> None:
        assert reporter.remaining(["a.t1", "a.t2"]) == ["a.t2"]
        commit = reporter.progress.commit
        assert commit is not None
        reporter.done(commit.result)

    room.start(copy=go_on)
    ended = room.end()
    assert (ended.state, ended.starts, ended.tables_done) == (OperationState.DONE, 2, 2)
    assert ended.started_at == left.started_at
    (row,) = room.rows()
    assert (row["state"], row["rows_read"], row["rows_swept"]) == ("done", 8, 3)


def test_an_operation_that_kills_the_job_each_time_fails(room: Room) -> None:
    files.ask(room.folder, operation())
    died = Progress(id=ID, state=OperationState.RUNNING, starts=MOST_STARTS)
    files.write_progress(room.folder, died)
    room.start(copy=lambda _asked, _reporter: pytest.fail("it was begun"))

    ended = room.end()
    assert (ended.state, ended.error_kind) == (OperationState.FAILED, "server_failed")
    assert f"died {MOST_STARTS} times" in ended.reason


def test_an_end_without_a_row_is_recorded_at_the_next_start(room: Room) -> None:
    """The lake could not be written when the operation ended."""
    in_the_way = room.folder / "lake"
    in_the_way.write_text("")
    files.ask(room.folder, operation())
    first = Desk(room.folder, room.record, {"copy": lambda _asked, _reporter: None})
    first.start()
    assert room.end().state is OperationState.DONE
    first.stop(60)

    in_the_way.unlink()
    room.start()
    until(lambda: DeltaTable.is_deltatable(room.record.path))
    assert [row["state"] for row in room.rows()] == ["done"]


@pytest.mark.parametrize("recorded", [False, True])
def test_a_crash_between_row_and_end_does_not_run_it_again(room: Room, recorded: bool) -> None:
    files.ask(room.folder, operation())
    running = Progress(id=ID, state=OperationState.RUNNING, starts=1)
    files.write_progress(room.folder, running)
    results = (TableResult(table="a.t1", rows_read=8),)
    ended = replace(running, state=OperationState.DONE, results=results)
    files.write_ending(room.folder, ended)
    if recorded:
        room.record.end(operation(), ended)
    room.start(copy=lambda _asked, _reporter: pytest.fail("it was begun"))

    assert room.end() == ended
    assert [(row["state"], row["rows_read"]) for row in room.rows()] == [("done", 8)]


def test_an_operation_whose_files_are_gone_fails(room: Room) -> None:
    running = Progress(id=ID, state=OperationState.RUNNING, started_at="2026-11-21T01:00:00+00:00")
    room.record.begin(operation(), running)
    room.start()

    until(lambda: [row["state"] for row in room.rows()] == ["failed"])
    (row,) = room.rows()
    assert "files in the state directory are gone" in row["outcome"]
    assert (row["tables"], row["predicate"]) == (["a.t1"], "id < 3")


def test_files_of_old_operations_are_removed_and_their_rows_stay(room: Room) -> None:
    for number, ended_at in ((1, "2020-01-01T00:00:00+00:00"), (2, datetime.now(UTC).isoformat())):
        files.ask(room.folder, operation(number))
        ended = Progress(id=operation(number).id, state=OperationState.DONE, ended_at=ended_at)
        files.write_progress(room.folder, ended)
        room.record.end(operation(number), ended)
    room.start()

    until(lambda: files.all_operations(room.folder) == [operation(2)])
    assert len(room.rows()) == 2
