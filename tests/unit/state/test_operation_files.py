"""Operations are requested by files: which are refused, and what a crash leaves behind."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cdc.errors import CdcError, ErrorKind
from cdc.state import operation_files as files
from cdc.state.operation import (
    AnnouncedCommit,
    Operation,
    OperationState,
    Progress,
    TableResult,
    operation_facts,
    operation_of,
    progress_facts,
    progress_of,
)


def operation(number: int, *tables: str, command: str = "resnapshot") -> Operation:
    return Operation(
        id=f"20261121T0000{number:02}-{number:04x}",
        command=command,
        tables=tables,
        line=f"wal2lake {command}",
        asked_by="ann@host, pid 7",
        asked_at=f"2026-11-21T00:00:{number:02}.000001+00:00",
        options={"where": "id < 3"},
    )


def test_requested_operations_are_read_oldest_first(tmp_path: Path) -> None:
    second, first = operation(2, "a.c"), operation(1, "a.b", "a.d")
    for each in (second, first):
        files.ask(tmp_path, each)

    assert files.unfinished(tmp_path) == [first, second]
    assert files.operation(tmp_path, first.id) == first
    assert files.progress(tmp_path, first.id).state is OperationState.WAITING


def test_a_table_of_an_unfinished_operation_is_refused_by_its_id(tmp_path: Path) -> None:
    first = operation(1, "a.b", "a.c")
    files.ask(tmp_path, first)

    with pytest.raises(CdcError) as raised:
        files.ask(tmp_path, operation(2, "a.d", "a.c", command="replay"))
    assert raised.value.kind is ErrorKind.CONFLICT
    assert raised.value.message == f"operation {first.id} (resnapshot) is not finished with a.c"
    assert f"wal2lake cancel {first.id}" in raised.value.remedy
    files.ask(tmp_path, operation(3, "a.d"))
    assert len(files.unfinished(tmp_path)) == 2


@pytest.mark.parametrize("state", list(OperationState))
def test_only_an_end_frees_the_table(tmp_path: Path, state: OperationState) -> None:
    files.ask(tmp_path, operation(1, "a.b"))
    files.write_progress(tmp_path, Progress(id=operation(1).id, state=state))

    if state.value in {"done", "failed", "cancelled"}:
        files.ask(tmp_path, operation(2, "a.b"))
        assert files.unfinished(tmp_path) == [operation(2, "a.b")]
    else:
        with pytest.raises(CdcError, match="is not finished"):
            files.ask(tmp_path, operation(2, "a.b"))


def test_half_a_file_is_ignored(tmp_path: Path) -> None:
    whole = operation(1, "a.b")
    files.ask(tmp_path, whole)
    files.write_progress(tmp_path, Progress(id=whole.id, state=OperationState.RUNNING))
    folder = files.directory(tmp_path)
    for name in (f"{whole.id}.progress.json", f"{operation(2).id}.operation.json"):
        (folder / name).write_text('{"id": "2026')
    # Of a process that was killed before it renamed it.
    (folder / f".{operation(3).id}.operation.json.7.partial").write_text("{")
    (folder / f"{operation(4).id}.operation.json").write_text('{"id": 4, "tables": ["a.b"]}')

    assert files.unfinished(tmp_path) == [whole]
    assert files.progress(tmp_path, whole.id).state is OperationState.WAITING
    with pytest.raises(CdcError, match="there is no operation"):
        files.operation(tmp_path, operation(2).id)
    files.ask(tmp_path, operation(3, "a.c"))
    assert len(files.unfinished(tmp_path)) == 2


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    # The process holds the lock until it is killed; the sleep has an end in case it is not.
    script = (
        "import sys, time, pathlib\n"
        "from cdc.state.operation_files import locked\n"
        "with locked(pathlib.Path(sys.argv[1])):\n"
        "    print('held', flush=True)\n"
        "    time.sleep(600)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        os.kill(holder.pid, signal.SIGKILL)

    files.ask(tmp_path, operation(1, "a.b"))
    assert files.unfinished(tmp_path) == [operation(1, "a.b")]


@pytest.mark.parametrize("name", ["", "..", "../job", "a/b", "a.b", "-x"])
def test_an_id_that_could_be_a_path_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CdcError) as raised:
        files.request_control(tmp_path, name, files.CANCEL)
    assert raised.value.kind is ErrorKind.CONFIG


def test_a_waiting_operation_is_cancelled_without_a_job(tmp_path: Path) -> None:
    files.ask(tmp_path, operation(1, "a.b"))
    files.request_control(tmp_path, operation(1).id, files.CANCEL)

    said = files.progress(tmp_path, operation(1).id)
    assert (said.state, said.error_kind) == (OperationState.CANCELLED, "cancelled")
    assert files.unfinished(tmp_path) == []


def test_only_an_operation_that_has_not_ended_can_be_paused_or_cancelled(tmp_path: Path) -> None:
    files.ask(tmp_path, operation(1, "a.b"))
    running = Progress(id=operation(1).id, state=OperationState.RUNNING)
    files.write_progress(tmp_path, running)

    files.request_control(tmp_path, running.id, files.PAUSE)
    assert files.control_request(tmp_path, running.id) == "pause"
    files.request_control(tmp_path, running.id, "")
    assert files.control_request(tmp_path, running.id) == ""
    files.request_control(tmp_path, running.id, files.CANCEL)
    with pytest.raises(CdcError, match="is being cancelled"):
        files.request_control(tmp_path, running.id, "")
    assert files.control_request(tmp_path, running.id) == "cancel"
    files.write_progress(tmp_path, replace(running, state=OperationState.DONE))
    with pytest.raises(CdcError, match="has ended: it is done"):
        files.request_control(tmp_path, running.id, files.CANCEL)


def test_progress_and_operations_are_read_back_even_from_a_later_version() -> None:
    told = Progress(
        id="x",
        state=OperationState.PAUSED,
        rows_expected=7,
        results=(TableResult(table="a.b", added=2, cut_after=9, note="n"),),
        commit=AnnouncedCommit(
            reading=3, result=TableResult(table="a.c", swept=1), settles=(7, -8)
        ),
    )

    assert progress_of(json.loads(json.dumps(progress_facts(told)))) == told
    assert progress_of({**progress_facts(told), "new": 1}) == told
    assert operation_of({**operation_facts(operation(1, "a.b")), "new": 1}) == operation(1, "a.b")
    assert progress_of({**progress_facts(told), "state": "dancing"}) is None
    assert operation_of({"id": "x"}) is None


def test_rate_and_time_left_are_those_of_the_current_phase() -> None:
    told = Progress(
        id="x",
        state=OperationState.RUNNING,
        rows=500,
        rows_before=300,
        rows_expected=1000,
        started_at="2026-11-21T00:00:00+00:00",
        counted_from="2026-11-21T00:01:00+00:00",
        updated_at="2026-11-21T00:01:04+00:00",
    )

    assert (told.rate, told.eta_seconds, told.seconds) == (50, 10, 64)
    assert replace(told, rows=300).eta_seconds is None
    assert replace(told, rows_expected=None).eta_seconds is None
    assert replace(told, rows=1200).eta_seconds == 0


def test_the_outcome_is_one_sentence() -> None:
    results = (
        TableResult(table="a.b", rows_read=1200, added=1, swept=2),
        TableResult(table="a.c", rows_read=1, added=3, note="replaced whole"),
    )
    done = Progress(id="x", state=OperationState.DONE, results=results)
    failed = Progress(id="x", state=OperationState.FAILED, reason="no room", remedy="make some")

    assert done.outcome == "2 tables: 1,201 rows read, 4 added, 2 swept; a.c: replaced whole"
    assert failed.outcome == "no room; remedy: make some"
    assert replace(done, state=OperationState.RUNNING).outcome == ""
