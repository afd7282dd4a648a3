"""Manage the demo's directory: its configuration, lake and state, and the commands on them."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cdc.config import Config, load
from cdc.errors import CdcError, ErrorKind

CONFIG: Final = """\
# Written by the demo. Pass it to any wal2lake command with --config.
name: demo
source:
  tables: [shop.*]
lake: {path: lake}
state_dir: state
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoDirectory:
    """Manages a directory that holds everything of a demo and can be deleted."""

    root: Path

    @property
    def config_file(self) -> Path:
        """Return the configuration file of the demo."""
        return self.root / "wal2lake.yaml"

    @property
    def logs(self) -> Path:
        """Return the directory of the log files."""
        return self.root / "state" / "logs"

    def create(self) -> Config:
        """Stop and remove an earlier demo, then write the configuration and return it."""
        self.remove()
        self.root.mkdir(parents=True)
        self.config_file.write_text(CONFIG)
        return load(self.config_file)

    def define(self, definitions: Path) -> None:
        """Copy the definitions of derived tables to where the job looks for them."""
        shutil.copytree(definitions, self.root / "derived")

    def remove(self) -> None:
        """Stop the demo and delete the directory."""
        self.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def stop(self) -> None:
        """Stop everything that runs, if there is a demo."""
        if self.config_file.exists():
            self.command("down", quiet=True)

    def command(self, *arguments: str, quiet: bool = False) -> None:
        """Run a ``wal2lake`` command that prints to our output.

        Raises DIFFERENT for exit code 1, SERVER_FAILED for others; the command has explained why.
        """
        output = subprocess.DEVNULL if quiet else None
        line = [sys.executable, "-m", "cdc", *arguments, "--config", str(self.config_file)]
        code = subprocess.run(line, stdout=output, check=False).returncode
        if code:
            raise CdcError(
                ErrorKind.DIFFERENT if code == 1 else ErrorKind.SERVER_FAILED,
                f"wal2lake {arguments[0]} ended with exit code {code}",
            )
