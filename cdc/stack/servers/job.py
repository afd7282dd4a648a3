"""The job as one more supervised process."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cdc.errors import POLICY, ErrorKind
from cdc.stack.process.process import Command, Identity
from cdc.state.directory import StateDir, read_json

_FINAL = (
    ErrorKind.CONFIG,
    ErrorKind.PREREQUISITE,
    ErrorKind.SOURCE_NOT_READY,
    ErrorKind.CONFLICT,
    ErrorKind.CHAIN_BROKEN,
)

FINAL_EXIT_CODES = frozenset(POLICY[kind].exit_code for kind in _FINAL)
"""Ends after which the same start would end the same way: a person has to look."""


@dataclass(frozen=True, slots=True)
class Job:
    """Starts ``wal2lake run``; ready when its state file says that it applies."""

    state: StateDir
    config_path: Path
    name: str = "job"

    def prepare(self) -> None:
        """Nothing; the job makes its own directories."""

    def command(self) -> Command:
        arguments = (sys.executable, "-m", "cdc", "run", "--config", str(self.config_path))
        return Command(
            arguments=arguments,
            directory=self.state.root,
            stop_seconds=60,  # it ends after the batch it is at
        )

    def is_ready(self) -> bool:
        return self._said().get("state") == "applying"

    def progress(self) -> object:
        """How many steps of its start it has done."""
        return self._said().get("steps")

    def _said(self) -> Mapping[str, object]:
        """Of this process, by the pid: the file of an earlier job says the same."""
        said = read_json(self.state.job_file) or {}
        running = Identity.read(self.state.run / f"{self.name}.json")
        return said if running is not None and said.get("pid") == running.pid else {}
