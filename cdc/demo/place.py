"""Where the demonstration lives: its configuration, its lake, its state; and the commands on it."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cdc.config import Config, load
from cdc.errors import CdcError, ErrorKind

CONFIG: Final = """\
# Written by the demonstration; every wal2lake command takes it with --config.
name: demo
source:
  tables: [shop.*]
  append_only: [shop.page_views]
lake: {path: lake}
state_dir: state
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A directory that holds all of it, and can be thrown away."""

    root: Path

    @property
    def config_file(self) -> Path:
        return self.root / "wal2lake.yaml"

    @property
    def logs(self) -> Path:
        return self.root / "state" / "logs"

    def create(self) -> Config:
        """From nothing: what an earlier run left is stopped and removed first."""
        self.remove()
        self.root.mkdir(parents=True)
        self.config_file.write_text(CONFIG)
        return load(self.config_file)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.root, ignore_errors=True)

    def stop(self) -> None:
        if self.config_file.exists():
            self.command("down", quiet=True)

    def command(self, *arguments: str, quiet: bool = False) -> None:
        """Run ``wal2lake`` with our output; raises when it fails, which it has explained."""
        output = subprocess.DEVNULL if quiet else None
        line = [sys.executable, "-m", "cdc", *arguments, "--config", str(self.config_file)]
        code = subprocess.run(line, stdout=output, check=False).returncode
        if code:
            raise CdcError(
                ErrorKind.DIFFERENT if code == 1 else ErrorKind.SERVER_FAILED,
                f"wal2lake {arguments[0]} ended with exit code {code}",
            )
