"""Ask the job for operations and disturb it meanwhile."""

from typing import Final

from cdc.client.status import components
from cdc.state import operation_files as files
from cdc.state.operation import OperationState, Progress
from tests.faults.bank.armed import Armed
from tests.faults.bank.readers import RECOVERY_SECONDS
from tests.faults.scenes.disturbances import DISTURBANCES, PROCESSES
from tests.faults.scenes.running import COMMAND_SECONDS
from tests.operations.asked import last_object
from tests.waiting import until

PAUSE: Final = "pause"
_NOT_YET: Final = frozenset({4, 11})
"""Exit codes while the job or the connector is restarting: ask again."""


def await_processes(bank: Armed) -> None:
    """Wait until every process is up, so that there is something to kill."""

    def all_up() -> bool:
        pids = {server.name: server.pid for server in components.servers(bank.state_dir)}
        return all(pids.get(name) is not None for name in PROCESSES)

    until(all_up, RECOVERY_SECONDS)


def operate(bank: Armed, arguments: tuple[str, ...], during: str) -> None:
    """Ask for the operation, pause or disturb it as ``during`` says, and await its success."""
    operation = _ask(bank, arguments)
    until(lambda: _progress(bank, operation).state is not OperationState.WAITING, COMMAND_SECONDS)
    if during == PAUSE:
        _pause(bank, operation)
    elif during:
        DISTURBANCES[during](bank)
    until(lambda: _progress(bank, operation).state.ended, COMMAND_SECONDS)
    ended = _progress(bank, operation)
    assert ended.state is OperationState.DONE, f"{' '.join(arguments)}: {ended.outcome}"


def _ask(bank: Armed, arguments: tuple[str, ...]) -> str:
    operation = ""

    def is_accepted() -> bool:
        nonlocal operation
        done = bank.done(*arguments, "--detach", "--json")
        if done.returncode in _NOT_YET:
            return False
        assert done.returncode == 0, f"{arguments} gave {done.returncode}\n{done.stderr}"
        operation = last_object(done.stdout)["id"]
        return True

    until(is_accepted, RECOVERY_SECONDS)
    return operation


def _pause(bank: Armed, operation: str) -> None:
    """Pause the operation, then resume it; it may have ended before."""
    bank.done("pause", operation)
    resting = (OperationState.PAUSED, *(state for state in OperationState if state.ended))
    until(lambda: _progress(bank, operation).state in resting, COMMAND_SECONDS)
    if not _progress(bank, operation).state.ended:
        bank.run("resume", operation)


def _progress(bank: Armed, operation: str) -> Progress:
    return files.progress(bank.state_dir, operation)
