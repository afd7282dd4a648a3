"""The demo explains a failure, and stops everything however it ends."""

import signal
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from cdc.demo import __main__ as demo_main
from cdc.demo.demo import Demo, Options
from cdc.demo.demo_directory import DemoDirectory
from cdc.errors import CdcError, ErrorKind

OPTIONS = Options(seconds=1, rate=1, rows=2000, seed=1)


class Stopped(DemoDirectory):
    """A directory without a stack, which records that it was stopped."""

    def stop(self) -> None:
        self.root.joinpath("stopped").touch()


@dataclass(kw_only=True)
class Failing(Demo):
    """A demo that fails at the step ``snapshot`` with ``error``."""

    error: BaseException

    def run(self) -> None:
        self.step = "snapshot"
        raise self.error


@pytest.fixture
def restore_signals() -> Iterator[None]:
    kept = {number: signal.getsignal(number) for number in demo_main.ENDING}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


@pytest.fixture
def directory(tmp_path: Path) -> DemoDirectory:
    logs = tmp_path / "state" / "logs"
    logs.mkdir(parents=True)
    (logs / "connect.log").touch()
    return Stopped(root=tmp_path)


@pytest.mark.usefixtures("restore_signals")
@pytest.mark.parametrize(
    ("error", "code", "shown"),
    [
        (CdcError(ErrorKind.SERVER_FAILED, "connect died"), 11, "connect died"),
        (CdcError(ErrorKind.DIFFERENT, "tables differ"), 1, "tables differ"),
        (ZeroDivisionError("oh"), 70, "ZeroDivisionError: oh"),
    ],
)
def test_a_failure_names_the_step_the_reason_and_the_logs(
    directory: DemoDirectory,
    error: BaseException,
    code: int,
    shown: str,
) -> None:
    said = StringIO()
    console = Console(file=said, width=400)
    demo = Failing(directory=directory, options=OPTIONS, console=console, error=error)

    assert demo_main._run(demo, console) == code

    output = said.getvalue()
    assert "failed at step snapshot" in output
    assert shown in output
    assert str(directory.logs / "connect.log") in output
    assert (directory.root / "stopped").exists()


@pytest.mark.usefixtures("restore_signals")
def test_an_interrupt_stops_everything(directory: DemoDirectory) -> None:
    console = Console(file=StringIO(), width=400)
    demo = Failing(directory=directory, options=OPTIONS, console=console, error=KeyboardInterrupt())

    assert demo_main._run(demo, console) == demo_main.INTERRUPTED

    assert (directory.root / "stopped").exists()


def test_a_command_that_fails_is_named(tmp_path: Path) -> None:
    directory = DemoDirectory(root=tmp_path)

    with pytest.raises(CdcError, match="wal2lake verify ended with exit code 2"):
        directory.command("verify", quiet=True)  # there is no configuration file
