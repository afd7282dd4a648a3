"""A lock on a file has one holder, and goes with its process."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from cdc.errors import CdcError, ErrorKind
from cdc.state import file_lock

HOLD = """
import signal, sys
from pathlib import Path
from cdc.state import file_lock
with file_lock.hold(Path(sys.argv[1])):
    print("held", flush=True)
    signal.pause()
"""
REFUSAL = CdcError(ErrorKind.CONFLICT, "somebody has it")


def test_a_lock_is_refused_while_it_is_held_and_free_when_its_process_is_killed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "folder" / "lock"
    with subprocess.Popen([sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(CdcError, match="somebody has it"), file_lock.hold(path, REFUSAL):
            pass
        assert not file_lock.is_free(path)
        os.kill(holder.pid, signal.SIGKILL)

    assert file_lock.is_free(path)
    with file_lock.hold(path, REFUSAL):
        assert not file_lock.is_free(path)


def test_without_a_refusal_the_holder_is_waited_for(tmp_path: Path) -> None:
    order = []

    def second() -> None:
        with file_lock.hold(tmp_path / "lock"):
            order.append("second")

    with file_lock.hold(tmp_path / "lock"):
        waiter = threading.Thread(target=second)
        waiter.start()
        waiter.join(0.2)
        order.append("first")
    waiter.join()

    assert order == ["first", "second"]


def test_a_lock_without_a_file_and_a_pipe_that_nobody_holds(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert not file_lock.is_free(tmp_path / "none")
    assert file_lock.is_free(tmp_path / "pipe")


def test_a_lock_that_is_taken_is_kept_until_its_handle_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "lock"
    first = file_lock.taken(path)
    assert first is not None

    assert file_lock.taken(path) is None
    assert not file_lock.is_free(path)
    os.close(first)

    again = file_lock.taken(path)
    assert again is not None
    os.close(again)
