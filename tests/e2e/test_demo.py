"""Test a small demonstration, run as a newcomer would, and a Ctrl-C in the middle of it."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.e2e
ROOT = Path(__file__).resolve().parents[2]
SECONDS = 1500


@contextmanager
def demo(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run the demonstration in a session of its own, as a terminal would."""
    process = subprocess.Popen(
        [sys.executable, "-m", "cdc.demo", "--dir", str(folder), *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "COLUMNS": "200"},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGINT)
            process.wait(120)


def processes_of(folder: Path) -> list[str]:
    """Return the processes whose command line names the folder."""
    lines = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        if str(folder) in line:
            lines.append(line)
    return lines


@pytest.mark.timeout(SECONDS)
def test_the_demo_ends_equal_and_leaves_nothing_running(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with demo(folder, "--rows", "4000", "--seconds", "5", "--rate", "20") as process:
        output, _ = process.communicate(timeout=SECONDS)

    assert process.returncode == 0, output
    assert "equal: every row and value of 7 tables" in output
    assert re.search(r"snapshot +[\d,]+ rows/s", output)
    assert re.search(r"changes +[\d,]+ changes/s", output)
    assert re.search(r"freshness +p50 [\d.]+ s, p99 [\d.]+ s", output)
    assert re.search(r"--at \d+", output)
    assert (folder / "lake" / "shop" / "orders" / "_delta_log").is_dir()
    assert processes_of(folder) == []


@pytest.mark.timeout(SECONDS)
def test_an_interrupted_demo_leaves_nothing_running(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    with demo(folder, "--rows", "4000") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "kafka is ready" in line:
                break
        os.killpg(process.pid, signal.SIGINT)  # like Ctrl-C: a signal to the whole foreground group
        output, _ = process.communicate(timeout=180)

    assert process.returncode == 130, output
    assert "interrupted at step stack" in output
    assert processes_of(folder) == []
