"""Components report their state, from recorded answers and from real processes."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from cdc.cli.status import size
from cdc.client.status import components
from cdc.errors import CdcError, ErrorKind
from cdc.source.connector.failure import cause
from cdc.stack.process.process import ProcessIdentity
from cdc.stack.process.stack_report import READY, STOPPING, StackReport, connector_note
from cdc.state import job_state
from cdc.state.directory import StateDir
from cdc.state.job_state import JobState

TRACE = (
    "org.apache.kafka.connect.errors.ConnectException: An exception occurred\n"
    "\tat io.debezium.pipeline.ErrorHandler.setProducerThrowable(ErrorHandler.java:67)\n"
    "Caused by: io.debezium.DebeziumException: Failed to start replication stream\n"
    "\tat x.y.Z(Z.java:1)\n"
    "Caused by: org.postgresql.util.PSQLException: ERROR: slot is active for PID 7\n"
    "\t... 9 more\n"
)
NO_TOPIC = (
    "org.apache.kafka.connect.errors.ConnectException: Unrecoverable exception\n"
    "\tat org.apache.kafka.connect.runtime.X(X.java:1)\n"
    "Caused by: org.apache.kafka.common.errors.TimeoutException: Topic w.message not present in "
    "metadata after 60000 ms.\n"
    "Caused by: org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does "
    "not host this topic-partition.\n"
)


def test_the_cause_of_a_trace_is_the_innermost_with_information() -> None:
    assert cause(TRACE) == "ERROR: slot is active for PID 7"
    assert "Topic w.message not present" in cause(NO_TOPIC)
    assert cause(NO_TOPIC.splitlines()[-1]).endswith("topic-partition.")
    assert cause("") == ""


@pytest.fixture
def connect_worker() -> Iterator[tuple[str, dict[str, object]]]:
    """Serve the dictionary that a test fills as each connector's status; 404 while it is empty."""
    answer: dict[str, object] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if answer else 404)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", answer
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_failed_task_is_a_failed_connector_with_its_innermost_cause(
    connect_worker: tuple[str, dict[str, object]],
) -> None:
    url, answer = connect_worker
    assert components.connector(url, "w").state == "missing"

    answer.update(connector={"state": "RUNNING"}, tasks=[{"id": 0, "state": "RUNNING"}])
    assert components.connector(url, "w") == components.ConnectorPart(state="RUNNING")

    answer["tasks"] = [{"id": 0, "state": "FAILED", "trace": TRACE}]
    found = components.connector(url, "w")
    assert (found.state, found.reason) == ("FAILED", "ERROR: slot is active for PID 7")

    answer["tasks"] = []
    assert components.connector(url, "w").state == "UNASSIGNED"


def test_no_worker_is_unreachable() -> None:
    with pytest.raises(CdcError) as caught:
        components.connector("http://127.0.0.1:1", "w")
    assert caught.value.kind is ErrorKind.UNREACHABLE


def test_a_job_is_alive_only_while_its_own_process_runs(tmp_path: Path) -> None:
    assert components.job(tmp_path).alive is False
    now = datetime.now(UTC)
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        said = JobState(pid=process.pid, state="applying", started_at=now.isoformat())
        job_state.write(tmp_path, said)
        assert components.job(tmp_path) == components.JobPart(
            state="applying", pid=process.pid, alive=True
        )

        # A process that began after the job's recorded start has reused its pid.
        long_ago = (now - timedelta(hours=1)).isoformat()
        before = JobState(pid=process.pid, state="applying", started_at=long_ago)
        job_state.write(tmp_path, before)
        assert components.job(tmp_path).alive is False
    finally:
        process.communicate(b"\n")
    job_state.write(tmp_path, said)
    assert components.job(tmp_path).alive is False


def test_an_unreadable_job_file_is_an_unknown_job(tmp_path: Path) -> None:
    job_state.path(tmp_path).write_text('{"pid": 1')
    assert components.job(tmp_path).state == "unknown"


def test_embedded_servers_of_a_supervisor_that_is_gone_are_gone(tmp_path: Path) -> None:
    assert components.servers(tmp_path) == []
    member = {"pid": 1, "state": "running", "restarts": 2, "reason": ""}
    (tmp_path / "stack.json").write_text(
        json.dumps(
            {"supervisor": {"pid": 2**22 + 1, "create_time": 1.0}, "processes": {"kafka": member}}
        )
    )

    assert components.servers(tmp_path) == [
        components.ServerPart(name="kafka", state="gone", pid=None, restarts=2, reason="")
    ]


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2**30, "1.0 GiB"), (2**50, "1024.0 TiB")],
)
def test_sizes_are_readable(number: int, text: str) -> None:
    assert size(number) == text


def test_up_is_shown_with_its_phase_and_whether_it_still_runs(tmp_path: Path) -> None:
    state = StateDir(tmp_path)
    assert components.up(tmp_path) is None
    mine = StackReport(state=state, supervisor=ProcessIdentity.of(os.getpid()))
    mine.event("starting kafka")
    assert components.up(tmp_path) == components.UpPart(phase="starting", doing="starting kafka")
    mine.enter(READY)
    assert components.up(tmp_path) == components.UpPart(phase="ready", doing="starting kafka")
    gone = StackReport(
        state=state, supervisor=ProcessIdentity(pid=os.getpid(), create_time=1.0), phase=READY
    )
    gone.write()
    assert components.up(tmp_path) == components.UpPart(phase="gone")
    gone.fail(CdcError(ErrorKind.CONFIG, "a typo", detail="line 3", remedy="mend it"))
    assert components.up(tmp_path) == components.UpPart(
        phase="failed", kind="config", error="a typo: line 3", remedy="mend it"
    )
    gone.enter(STOPPING)
    assert components.up(tmp_path) is None


def test_a_note_about_the_connector_is_shown_while_it_is_recent(
    tmp_path: Path,
) -> None:
    state = StateDir(tmp_path)
    report = StackReport(state=state, supervisor=ProcessIdentity.of(os.getpid()))
    report.write()
    assert connector_note(state, 60) == ""
    report.note_connector("it failed")
    report.write()
    assert connector_note(state, 3600) == "it failed"
    assert connector_note(state, -3600) == ""
