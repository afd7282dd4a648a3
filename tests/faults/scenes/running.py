"""What brings the job to a failpoint: a trigger, and commands that outlive its kills."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from cdc.client.status import components
from cdc.errors import POLICY, ErrorKind
from tests.faults.bank.armed import Armed
from tests.waiting import until

COMMAND_SECONDS: Final = 1800
APPLY: Final = ("apply-config", "--timeout", str(COMMAND_SECONDS))
Await = Callable[[], None]
Trigger = Callable[[Armed, str, Await], None]


@contextmanager
def begun(bank: Armed, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command during the block; kill it if it has not ended by then."""
    process = subprocess.Popen(
        bank.command(*arguments),
        cwd=bank.folder,
        env=bank.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def running(bank: Armed, *arguments: str) -> Iterator[None]:
    """Run a command during the block; it must survive kills of the job and then succeed.

    A job that was killed before the command asked it is asked again after the block: the longer it
    is killed, the later its supervisor starts it again.
    """
    until(lambda: components.job(bank.state_dir).alive, COMMAND_SECONDS)
    with begun(bank, *arguments) as process:
        yield
        printed, _ = process.communicate(timeout=COMMAND_SECONDS)
    if process.returncode == POLICY[ErrorKind.UNREACHABLE].exit_code:
        until(lambda: components.job(bank.state_dir).alive, COMMAND_SECONDS)
        bank.run(*arguments)
    else:
        assert process.returncode == 0, f"{arguments} gave {process.returncode}\n{printed}"
