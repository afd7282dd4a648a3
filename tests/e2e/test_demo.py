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
DAY = "2026-02-14"
MOVED = {
    "marts.revenue": [f"before {DAY} fr 3 170.00", f"after {DAY} fr 2 200.00"],
    "marts.visits": [
        f"before 1 {DAY} 10:00:00 {DAY} 10:40:00 3",
        f"after 1 {DAY} 10:00:00 {DAY} 10:00:00 1",
        f"after 1 {DAY} 10:40:00 {DAY} 10:40:00 1",
    ],
    "marts.fraud": [f"before 1 {DAY} 09:01:00 {DAY} 09:03:00 2 1300.00", "after no row"],
}
"""What follows from the rows of cdc/demo/example.sql and changes.sql, calculated by hand."""


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


def moved(output: str, table: str) -> list[str]:
    """Return the rows that the demonstration shows below the table's name."""
    _, _, below = output.partition(f"\n{table}: ")
    lines = [" ".join(line.split()) for line in below.split("\n\n")[0].splitlines()]
    return [line for line in lines if line.startswith(("before ", "after "))]


def equal(report: str, caption: str) -> set[str]:
    """Return the tables that are equal in the report above the caption."""
    lines, found, _ = report.partition(caption)
    assert found, report
    return set(re.findall(r"^ (\S+) .* 0 │ +0 │ equal", lines, re.MULTILINE))


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
    assert {name: moved(output, name) for name in MOVED} == MOVED
    local, source = output.split("wal2lake derived verify")[1:]
    assert equal(local, "calculated by DuckDB") == set(MOVED)
    assert equal(source, "calculated by the source") == {"marts.revenue", "marts.visits"}
    assert re.search(r"lag +0 cuts behind their inputs at cut \d+; .* of \d+ cuts", output)
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
