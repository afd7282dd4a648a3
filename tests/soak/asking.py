"""Operations that the job is asked for while it is not left alone."""

from typing import Final

from cdc.client.status import components
from cdc.state import operation_files as files
from cdc.state.operation import OperationState, Progress
from tests.faults.bank.armed import Armed
from tests.faults.bank.readers import RECOVERY_SECONDS
from tests.faults.scenes.disturbances import DISTURBANCES, PROCESSES
from tests.faults.scenes.steps import COMMAND_SECONDS
from tests.operations.asked import last_object
from tests.waiting import until

PAUSE: Final = "pause"
_NOT_YET: Final = frozenset({4, 11})
"""Job or connector are on their way up again: they say so, and are asked again."""


def await_processes(bank: Armed) -> None:
    """Until each is there again, so that there is something to kill."""

    def all_there() -> bool:
        found = {server.name: server.pid for server in components.servers(bank.state_dir)}
        return all(found.get(name) is not None for name in PROCESSES)

    until(all_there, RECOVERY_SECONDS)


def operate(bank: Armed, arguments: tuple[str, ...], during: str) -> None:
    """Ask for it, do something else to the job while it runs, and await that it is done."""
    operation = _asked(bank, arguments)
    until(lambda: _progress(bank, operation).state is not OperationState.WAITING, COMMAND_SECONDS)
    if during == PAUSE:
        _pause(bank, operation)
    elif during:
        DISTURBANCES[during](bank)
    until(lambda: _progress(bank, operation).state.ended, COMMAND_SECONDS)
    ended = _progress(bank, operation)
    assert ended.state is OperationState.DONE, f"{' '.join(arguments)}: {ended.outcome}"


def _asked(bank: Armed, arguments: tuple[str, ...]) -> str:
    asked = ""

    def ask() -> bool:
        nonlocal asked
        done = bank.done(*arguments, "--detach", "--json")
        if done.returncode in _NOT_YET:
            return False
        assert done.returncode == 0, f"{arguments} gave {done.returncode}\n{done.stderr}"
        asked = last_object(done.stdout)["id"]
        return True

    until(ask, RECOVERY_SECONDS)
    return asked


def _pause(bank: Armed, operation: str) -> None:
    """Until it rests, and then it goes on; it may have ended before."""
    bank.done("pause", operation)
    resting = (OperationState.PAUSED, *(state for state in OperationState if state.ended))
    until(lambda: _progress(bank, operation).state in resting, COMMAND_SECONDS)
    if not _progress(bank, operation).state.ended:
        bank.run("resume", operation)


def _progress(bank: Armed, operation: str) -> Progress:
    return files.progress(bank.state_dir, operation)
