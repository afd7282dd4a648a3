"""What brings the job to a failpoint: a trigger, and commands that outlive its kills."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from cdc.errors import POLICY, ErrorKind
from tests.faults.bank.armed import Armed

COMMAND_SECONDS: Final = 1800
APPLY: Final = ("apply-config", "--timeout", str(COMMAND_SECONDS))
Await = Callable[[], None]
Trigger = Callable[[Armed, str, Await], None]
_NO_JOB: Final = POLICY[ErrorKind.UNREACHABLE].exit_code
_UNTIL_THERE_IS_A_JOB: Final = (
    f'until "$@"; do code=$?; [ $code -eq {_NO_JOB} ] || exit $code; done'
)


@contextmanager
def begun(bank: Armed, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command during the block; kill it if it has not ended by then."""
    with _process(bank, bank.command(*arguments)) as process:
        yield process


@contextmanager
def running(bank: Armed, *arguments: str) -> Iterator[None]:
    """Run a command during the block; it must survive kills of the job and then succeed.

    While there is no job it is run again: the more often a job was killed, the later its supervisor
    starts the next one.
    """
    command = ["sh", "-c", _UNTIL_THERE_IS_A_JOB, "sh", *bank.command(*arguments)]
    with _process(bank, command) as process:
        yield
        printed, _ = process.communicate(timeout=COMMAND_SECONDS)
        assert process.returncode == 0, f"{arguments} gave {process.returncode}\n{printed}"


@contextmanager
def _process(bank: Armed, command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command,
        cwd=bank.folder,
        env=bank.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):  # it has ended
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
