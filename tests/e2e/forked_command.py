"""Runs wal2lake's commands in forks of a process that has imported them already.

A command still is a process of its own, with its own environment, folder, output and exit code; but
it does not load Python's modules again, which takes most of a short command's time.
"""

import atexit
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Final

from cdc.cli import COMMANDS, FILES

_PRELOADED: Final = "LD_PRELOAD"
"""Is read when a process begins: a fork of another would be without such a library."""
_HEAVY: Final = "run"
"""The job, which loads Spark."""
_FILES: Final = {FILES.get(name, name.replace("-", "_")) for name in COMMANDS} - {_HEAVY}
_MODULES: Final = ["pytest", *(f"cdc.cli.{name}" for name in sorted(_FILES))]
"""What the forks find imported; pytest too, as they import the program that began them."""
_FORKS: Final = multiprocessing.get_context("forkserver")
_ONE_AT_A_TIME: Final = threading.Lock()
"""Two threads that start or join processes at once may both read the exit code of one."""


def run_command(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run a command in ``folder``, and return its exit code and output.

    Raises subprocess.TimeoutExpired, after it has killed the command, if it takes longer.
    """
    if environment.get(_PRELOADED) != os.environ.get(_PRELOADED):
        return run_anew(arguments, folder, environment, seconds)
    with tempfile.TemporaryDirectory() as place:
        out, err = Path(place, "out"), Path(place, "err")
        code = _run_fork((tuple(arguments), str(folder), dict(environment), out, err), seconds)
        return subprocess.CompletedProcess(arguments, code, out.read_text(), err.read_text())


def run_anew(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float
) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of Python's own, which loads all modules."""
    return subprocess.run(
        [sys.executable, "-m", "cdc", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


Fork = tuple[tuple[str, ...], str, dict[str, str], Path, Path]


def _run_fork(fork: Fork, seconds: float) -> int:
    """Return the exit code of the command; that of a killed one is negative."""
    with _ONE_AT_A_TIME:
        _FORKS.set_forkserver_preload(_MODULES)
        process = _FORKS.Process(target=_in_fork, args=fork)
        process.start()
    ended = bool(wait([process.sentinel], seconds))
    with _ONE_AT_A_TIME:
        if not ended:
            process.kill()
        process.join()
        code = process.exitcode
        process.close()
    if not ended:
        raise subprocess.TimeoutExpired(fork[0], seconds)
    assert code is not None
    return code


def _in_fork(
    arguments: tuple[str, ...], folder: str, environment: dict[str, str], out: Path, err: Path
) -> None:
    """Make this process like one that ``python -m cdc`` begins in, and run the command."""
    for file, number in ((out, 1), (err, 2)):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = ["wal2lake", *arguments]
    from cdc.__main__ import main  # noqa: PLC0415 - only the fork runs commands

    try:
        main()
    finally:
        atexit._run_exitfuncs()  # multiprocessing leaves them out
