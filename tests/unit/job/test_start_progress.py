"""A start that works reports steps before its first real one; a start that hangs does not."""

import json
import threading
from pathlib import Path

import pytest

from cdc.job.start_progress import reporting_alive
from cdc.state import job_state
from cdc.state.job_state import JobStateFile
from tests.waiting import until


def steps(folder: Path) -> int:
    return int(json.loads(job_state.path(folder).read_text())["steps"])


@pytest.fixture
def each_step_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_state, "STEP_SECONDS", 0.0)


@pytest.mark.usefixtures("each_step_is_written")
def test_a_working_start_reports_steps_before_its_first(tmp_path: Path) -> None:
    state_file = JobStateFile(tmp_path)
    state_file.enter("starting")

    with reporting_alive(state_file, lambda: True, every=0.01):
        until(lambda: steps(tmp_path) >= 3)

    after = steps(tmp_path)
    assert state_file.steps == after
    assert "start" not in [thread.name for thread in threading.enumerate()]


def test_a_start_that_hangs_reports_no_steps(tmp_path: Path) -> None:
    state_file, asked = JobStateFile(tmp_path), threading.Semaphore(0)
    state_file.enter("starting")

    def nothing_goes_on() -> bool:
        asked.release()
        return False

    with reporting_alive(state_file, nothing_goes_on, every=0.01):
        for _ in range(3):
            assert asked.acquire(timeout=60)

    assert steps(tmp_path) == 0


def test_short_steps_are_written_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_state, "STEP_SECONDS", 3600.0)
    state_file = JobStateFile(tmp_path)
    state_file.enter("starting")
    written = []
    monkeypatch.setattr(job_state, "write_shared", lambda _path, text: written.append(text))
    for _ in range(50):
        state_file.step()
    state_file.enter("applying")

    assert [json.loads(text)["steps"] for text in written] == [1, 50]


@pytest.mark.usefixtures("each_step_is_written")
def test_steps_of_several_threads_are_all_counted(tmp_path: Path) -> None:
    state_file = JobStateFile(tmp_path)
    state_file.enter("starting")

    def step_often() -> None:
        for _ in range(100):
            state_file.step()

    threads = [threading.Thread(target=step_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (state_file.steps, steps(tmp_path)) == (400, 400)
