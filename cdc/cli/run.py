"""``wal2lake run`` runs only the job, in the foreground."""

import signal
import threading
from functools import partial
from pathlib import Path
from types import FrameType

from cdc import config as configuration
from cdc.cli.options import DEFAULT_CONFIG, ConfigOption
from cdc.job import main
from cdc.observe import logs
from cdc.state.pipeline import resolve


def run(config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Land and apply until SIGTERM or Ctrl-C; the servers and the connector must be running."""
    apply_changes(config)


def apply_changes(path: Path) -> None:
    """Run the job with the configuration file at ``path``; shared with jobs/apply_changes.py."""
    logs.configure()
    read = partial(configuration.load, path)
    stop = threading.Event()

    def ask_to_stop(_signal: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ask_to_stop)
    main.run(read, resolve(read()).endpoints, stop)
