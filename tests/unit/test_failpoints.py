"""Tests that each failpoint is reached at one place, kills once, and is otherwise inert."""

import ast
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cdc.failpoints import HELD, HOLD, VARIABLE, Failpoint
from tests.faults.scenes.steps import AT_THE_FIRST_START, CASES, EXPIRY, FIRST_SNAPSHOT, points_of
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
LISTED = Counter(point.name for point in Failpoint)
POINT = Failpoint.AFTER_TABLE_COMMIT
TWICE = f"""
from cdc.failpoints import Failpoint, reach
reach(Failpoint.{POINT.name})
print("once")
reach(Failpoint.{POINT.name})
print("twice")
"""


def reached(source: str) -> Iterator[str]:
    """Yield the failpoint that each call of ``reach`` names, or its argument's text otherwise."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and _name(node.func).rpartition(".")[2] == "reach":
            (argument,) = node.args
            yield _name(argument).removeprefix("Failpoint.")


def _name(node: ast.expr) -> str:
    return ast.unparse(node)


def calls() -> Counter[str]:
    files = ROOT.glob("cdc/**/*.py")
    return Counter(name for path in files for name in reached(path.read_text()))


def child(folder: Path | None) -> subprocess.CompletedProcess[str]:
    variable = {} if folder is None else {VARIABLE: str(folder)}
    others = {name: value for name, value in os.environ.items() if name != VARIABLE}
    return subprocess.run(
        [sys.executable, "-c", TWICE],
        cwd=ROOT,
        env=others | variable,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_every_failpoint_is_reached_at_exactly_one_place() -> None:
    assert calls() == LISTED


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("reach(Failpoint.AFTER_VACUUM)", ["AFTER_VACUUM"]),
        ("def f():\n    failpoints.reach(failpoints.Failpoint.X)", ["failpoints.Failpoint.X"]),
        ("reach(name)", ["name"]),
    ],
)
def test_the_search_sees_a_call_and_what_it_names(source: str, found: list[str]) -> None:
    assert list(reached(source)) == found


def test_each_step_has_a_failpoint_before_and_one_after() -> None:
    steps = Counter(tuple(point.split("-", 1)) for point in Failpoint)
    names = {step for _, step in steps}

    assert set(steps) == {(side, name) for side in ("before", "after") for name in names}
    assert [point for point in Failpoint if point.name != point.upper().replace("-", "_")] == []


def test_the_job_is_killed_at_each_of_them() -> None:
    """The scenarios name them, so that tests/faults does not miss a new one."""
    listed = [step for _, steps in CASES.values() for step in steps]

    others = (*AT_THE_FIRST_START, *FIRST_SNAPSHOT, *EXPIRY)

    assert Counter(points_of(*listed, *others)) == Counter(Failpoint)


def test_the_module_needs_nothing_but_the_standard_library() -> None:
    source = ast.parse((ROOT / "cdc" / "failpoints.py").read_text())
    named = {
        module
        for node in ast.walk(source)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for module in (
            [node.module or "."]
            if isinstance(node, ast.ImportFrom)
            else [a.name for a in node.names]
        )
    }

    assert {name.partition(".")[0] for name in named} <= sys.stdlib_module_names


def test_a_file_kills_the_process_once(tmp_path: Path) -> None:
    trigger = tmp_path / POINT
    trigger.touch()
    other = tmp_path / Failpoint.BEFORE_TABLE_COMMIT
    other.touch()

    first = child(tmp_path)
    assert (first.returncode, first.stdout) == (-signal.SIGKILL, "")
    assert not trigger.exists()

    second = child(tmp_path)
    assert (second.returncode, second.stdout) == (0, "once\ntwice\n")
    assert other.exists()


def test_a_number_n_kills_the_process_the_nth_time(tmp_path: Path) -> None:
    (tmp_path / POINT).write_text("2")

    done = child(tmp_path)

    assert (done.returncode, list(tmp_path.iterdir())) == (-signal.SIGKILL, [])


def test_a_held_thread_waits_until_the_file_is_deleted(tmp_path: Path) -> None:
    (tmp_path / POINT).write_text(HOLD)
    with ThreadPoolExecutor() as pool:
        done = pool.submit(child, tmp_path)
        until(lambda: (tmp_path / POINT).read_text() == HELD, 60)
        assert not done.done()
        (tmp_path / POINT).unlink()
        assert (done.result().returncode, done.result().stdout) == (0, "once\ntwice\n")


def test_without_the_variable_a_file_is_left_alone(tmp_path: Path) -> None:
    trigger = tmp_path / POINT
    trigger.touch()

    done = child(None)

    assert (done.returncode, done.stdout) == (0, "once\ntwice\n")
    assert trigger.exists()
