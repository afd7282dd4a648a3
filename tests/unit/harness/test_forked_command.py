"""Tests that a command in a fork cannot be told from one in a process of Python's own."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.forked_command import run_anew, run_command

COMMANDS = (
    ("--version",),
    ("status", "--config", "nowhere.yaml"),
    ("status", "--config", "wal2lake.yaml", "--json"),
    ("verify", "--config", "wal2lake.yaml"),
    ("sync", "--timeout", "soon"),
    ("derived", "list", "--config", "wal2lake.yaml"),
    ("check", "--config", "wal2lake.yaml"),
)
WRITTEN = "source: {url: 'postgresql://nobody@127.0.0.1:1/none', tables: ['public.*']}\n"


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_exit_code_and_output_are_those_of_a_new_process(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "wal2lake.yaml").write_text(WRITTEN)
    environment = os.environ | {"COLUMNS": "100"}
    anew = run_anew(arguments, tmp_path, environment, 60)
    done = run_command(arguments, tmp_path, environment, 60)
    assert (done.returncode, done.stdout, done.stderr) == (
        anew.returncode,
        anew.stdout.replace("python -m cdc", "wal2lake"),
        anew.stderr.replace("python -m cdc", "wal2lake"),
    )


def test_the_environment_is_the_command_s_own(tmp_path: Path) -> None:
    (tmp_path / "wal2lake.yaml").write_text(WRITTEN)
    named = os.environ | {"WAL2LAKE_SOURCE__NO_SUCH_KEY": "1"}
    arguments = ("status", "--config", "wal2lake.yaml")
    assert "NO_SUCH_KEY" in run_command(arguments, tmp_path, named, 60).stderr.upper()
    assert "NO_SUCH_KEY" not in run_command(arguments, tmp_path, os.environ, 60).stderr.upper()


def test_a_command_that_takes_too_long_is_killed(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run_command(("--version",), tmp_path, os.environ, 0)


def test_each_of_several_at_once_has_its_own_exit_code(tmp_path: Path) -> None:
    given = [("--version",), ("status", "--config", "nowhere.yaml")] * 8
    with ThreadPoolExecutor(4) as threads:
        done = threads.map(lambda one: run_command(one, tmp_path, os.environ, 60), given)
        assert [one.returncode for one in done] == [0, 2] * 8
