"""The soak walk asks for operations until they are accepted, and follows them to their end."""

import json
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from cdc.state import operation_files as files
from cdc.state.operation import Operation, OperationState, Progress
from tests.faults.bank.armed import Armed
from tests.soak.asking import PAUSE, operate

ID = "20260102T030405-3f2a"
RUNNING = Progress(id=ID, state=OperationState.RUNNING)
DONE = replace(RUNNING, state=OperationState.DONE)
ARGUMENTS = ("resnapshot", "bank.ring")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told(Armed):
    """Ends each ``resnapshot`` of a bank with the next of the given exit codes."""

    codes: list[int]
    said: list[str] = field(default_factory=list)

    def done(self, *arguments: str, seconds: float = 0) -> subprocess.CompletedProcess[str]:
        del seconds
        self.said.append(arguments[0])
        code = self.codes.pop(0) if arguments[0] == "resnapshot" else 0
        printed = json.dumps({"id": ID, "state": "waiting"})
        return subprocess.CompletedProcess(arguments, code, printed, "said why")

    def run(self, *arguments: str, expect: int = 0) -> str:
        self.said.append(arguments[0])
        return str(expect)


@pytest.fixture
def bank(tmp_path: Path) -> Told:
    asked = Operation(
        id=ID, command="resnapshot", tables=("bank.ring",), line="", asked_by="", asked_at=""
    )
    found = Told(folder=tmp_path, servers={}, codes=[0])
    files.directory(found.state_dir).mkdir(parents=True)
    files.ask(found.state_dir, asked)
    return found


def goes_on(monkeypatch: pytest.MonkeyPatch, *states: Progress) -> None:
    """Let each look find the next state, and the last one for ever."""
    left = iter(states)
    monkeypatch.setattr(files, "progress", lambda _dir, _id: next(left, states[-1]))


def test_it_is_followed_to_its_end(bank: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on(monkeypatch, RUNNING, RUNNING, DONE)

    operate(bank, ARGUMENTS, "")

    assert bank.said == ["resnapshot"]


def test_it_is_asked_for_again_while_job_or_connector_are_starting(
    bank: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank.codes[:] = [4, 11, 0]
    goes_on(monkeypatch, DONE)

    operate(bank, ARGUMENTS, "")

    assert bank.said == ["resnapshot"] * 3


def test_a_refusal_fails_the_walk(bank: Told) -> None:
    bank.codes[:] = [6]

    with pytest.raises(AssertionError, match="gave 6"):
        operate(bank, ARGUMENTS, "")


@pytest.mark.parametrize("state", [OperationState.FAILED, OperationState.CANCELLED])
def test_an_operation_that_is_not_done_fails_the_walk(
    bank: Told, monkeypatch: pytest.MonkeyPatch, state: OperationState
) -> None:
    goes_on(monkeypatch, replace(DONE, state=state, reason="no room"))

    with pytest.raises(AssertionError, match="no room"):
        operate(bank, ARGUMENTS, "")


def test_one_that_rests_goes_on(bank: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    paused = replace(RUNNING, state=OperationState.PAUSED)
    goes_on(monkeypatch, RUNNING, RUNNING, paused, paused, DONE)

    operate(bank, ARGUMENTS, PAUSE)

    assert bank.said == ["resnapshot", "pause", "resume"]


def test_one_that_ended_before_it_rested_is_left_alone(
    bank: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on(monkeypatch, RUNNING, DONE)

    operate(bank, ARGUMENTS, PAUSE)

    assert bank.said == ["resnapshot", "pause"]
