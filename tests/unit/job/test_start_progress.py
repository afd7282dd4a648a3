"""A start that works is heard of before its first step; one that hangs is not."""

import json
import threading
from pathlib import Path

from cdc.job.start_progress import told_alive
from cdc.state import job_state
from cdc.state.job_state import Told
from tests.waiting import until


def steps(folder: Path) -> int:
    return int(json.loads(job_state.path(folder).read_text())["steps"])


def test_a_start_that_works_is_heard_of_without_a_step(tmp_path: Path) -> None:
    told = Told(tmp_path)
    told.enter("starting")

    with told_alive(told, lambda: True, every=0.01):
        until(lambda: steps(tmp_path) >= 3)

    after = steps(tmp_path)
    assert told.steps == after
    assert "start" not in [thread.name for thread in threading.enumerate()]


def test_a_start_that_hangs_is_not_heard_of(tmp_path: Path) -> None:
    told, asked = Told(tmp_path), threading.Semaphore(0)
    told.enter("starting")

    def nothing_goes_on() -> bool:
        asked.release()
        return False

    with told_alive(told, nothing_goes_on, every=0.01):
        for _ in range(3):
            assert asked.acquire(timeout=60)

    assert steps(tmp_path) == 0


def test_steps_of_several_threads_are_all_counted(tmp_path: Path) -> None:
    told = Told(tmp_path)
    told.enter("starting")

    def step_often() -> None:
        for _ in range(100):
            told.step()

    threads = [threading.Thread(target=step_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (told.steps, steps(tmp_path)) == (400, 400)
