"""``wal2lake run`` runs only the job, in the foreground."""

import os
import signal
import sys
import threading
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from cdc import config as configuration
from cdc.cli.options import DEFAULT_CONFIG, ConfigOption
from cdc.job import main
from cdc.observe import logs
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import resolve
from cdc.waiting import poll

_LOOK_SECONDS = 0.05

TurnOption = Annotated[Path | None, typer.Option("--turn", hidden=True)]


def run(config: ConfigOption = DEFAULT_CONFIG, turn: TurnOption = None) -> None:
    """Land and apply until SIGTERM or Ctrl-C; the servers and the connector must be running."""
    apply_changes(config, turn)


def apply_changes(path: Path, turn: Path | None = None) -> None:
    """Run the job with the configuration file at ``path``; shared with jobs/apply_changes.py.

    With ``turn`` only Spark starts, until the supervisor creates that file: before that a signal
    ends the process at once, and so does the end of the supervisor.
    """
    logs.configure()
    read = partial(configuration.load, path)
    stop = threading.Event()

    def await_turn() -> Endpoints:
        if turn is not None:
            _await(turn)
            _stop_on_signals(stop)
        return resolve(read()).endpoints

    if turn is None:
        resolve(read())  # before Spark starts: an address may be missing
        _stop_on_signals(stop)
    main.run(read, stop, await_turn)


def _await(turn: Path) -> None:
    supervisor = os.getppid()

    def is_over() -> bool:
        return turn.exists() or os.getppid() != supervisor

    poll(is_over, bool, every=_LOOK_SECONDS)
    if not turn.exists():
        sys.exit("the supervisor ended before the servers had started")


def _stop_on_signals(stop: threading.Event) -> None:
    def ask_to_stop(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ask_to_stop)
