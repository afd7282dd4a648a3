"""The tests of the container stack end after their time, and only what failed before counts."""

import signal
import sys
from collections.abc import Iterator

import pytest

from tools.stack import run_for

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
