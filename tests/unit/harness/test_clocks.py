"""Tests can set the clock of a running process, but not its monotonic clock."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.scenes.clocks import environment, library, nothing_left, set_back
from tests.waiting import until

PROGRAM = """
import sys, time
for line in sys.stdin:
    print(time.time(), time.monotonic(), flush=True)
"""
HOUR = 3600
PLACE = library()
Process = subprocess.Popen[str]

pytestmark = pytest.mark.skipif(PLACE is None, reason="libfaketime is not installed, or not here")


@pytest.fixture
def process(tmp_path: Path) -> Iterator[Process]:
    assert PLACE is not None
    with (
        nothing_left(),
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            cwd=tmp_path,
            env=os.environ | environment(PLACE),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as running,
    ):
        yield running


def times(process: Process) -> tuple[float, float]:
    """Return the process's time of day and its monotonic time."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("now\n")
    process.stdin.flush()
    day, monotonic = process.stdout.readline().split()
    return float(day), float(monotonic)


def test_it_is_set_back_and_put_right(process: Process, tmp_path: Path) -> None:
    began, steady = times(process)
    with set_back(tmp_path, 2 * HOUR):
        until(lambda: times(process)[0] < began - HOUR)
        assert steady <= times(process)[1] < steady + HOUR
    until(lambda: times(process)[0] >= began)
