"""The tests of the container stack need an engine, and end after their time.

Only what failed before that counts.
"""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from tools import stack
from tools.images import engine
from tools.images.compose import ROOT
from tools.stack import PARTS, run_for

WAITS = "import signal, sys; signal.sigwait([signal.SIGTERM]); sys.exit(int(sys.argv[1]))"
SHORT, LONG = 1e-9, 600


@pytest.fixture(autouse=True)
def interrupts_wait() -> Iterator[None]:
    """Keep what is sent to a program that only just starts, until it waits for that."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


@pytest.mark.parametrize(("ended", "code"), [(2, 0), (1, 1)])
def test_only_a_failure_counts_when_the_time_is_over(
    ended: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_for(SHORT, sys.executable, "-c", WAITS, str(ended)) == code
    assert capsys.readouterr().out.count("its minutes are over") == 1


def test_nothing_is_started_without_time(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_for(0, "no-such-program") == 0
    assert "its minutes are over" in capsys.readouterr().out


@pytest.mark.parametrize("code", [0, 1, 2])
def test_what_ends_by_itself_has_its_own_code(
    code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_for(LONG, sys.executable, "-c", f"raise SystemExit({code})") == code
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("command", ["apt-get", "dockerd"])
def test_a_line_says_that_no_engine_can_be_started(
    command: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A sandbox may let neither packages be installed nor an engine run."""
    program = tmp_path / command
    program.write_text("#!/bin/sh\necho not permitted >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(engine, "home", lambda: tmp_path / "engine")
    monkeypatch.setattr(engine, "answers", lambda: False)
    monkeypatch.setattr(engine, "why_none", lambda: None)
    if command == "dockerd":
        monkeypatch.setattr(engine, "install", lambda *_: None)

    assert stack.test([]) == 0

    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("the container stack is not tested: ")
    assert "not permitted" in line


def test_every_part_is_there_and_the_servers_of_the_suite_are_one() -> None:
    files = {f"tests/containers/{path.name}" for path in ROOT.glob("tests/containers/test_*.py")}

    assert set(PARTS.values()) == files | {"tests/servers"}
    assert PARTS["a_up"] == "tests/containers/test_a_up.py"


@pytest.mark.parametrize(
    ("arguments", "paths"), [([], [*PARTS.values()]), (["--only", "servers"], ["tests/servers"])]
)
def test_its_servers_are_containers(
    arguments: list[str], paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    called = list[list[str]]()

    def run(command: list[str], **_: object) -> SimpleNamespace:
        called.append(command)
        return SimpleNamespace(returncode=7)

    monkeypatch.setattr(engine, "running", nullcontext)
    monkeypatch.setattr(stack, "provide", lambda *_: None)
    monkeypatch.setattr(subprocess, "run", run)

    assert stack.test(arguments) == 7
    assert called == [[sys.executable, "-m", "pytest", "--servers=container", *paths]]


def test_a_part_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        stack.test(["--only", "a_down"])

    assert ended.value.code == 2
    assert "a_up" in capsys.readouterr().err
