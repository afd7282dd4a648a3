"""Where the demonstration lives: its configuration, its lake, its state; and the commands on it."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
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

Ended = subprocess.Popen[str] | subprocess.CompletedProcess[bytes]


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
        _check(arguments, subprocess.run(self._line(arguments), stdout=output, check=False))

    def lines(self, *arguments: str) -> Iterator[str]:
        """Run ``wal2lake`` and give what it says as it says it; raises as ``command`` does."""
        with subprocess.Popen(self._line(arguments), stdout=subprocess.PIPE, text=True) as process:
            yield from (line.rstrip() for line in process.stdout or ())
        _check(arguments, process)

    def _line(self, arguments: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "cdc", *arguments, "--config", str(self.config_file)]


def _check(arguments: tuple[str, ...], ended: Ended) -> None:
    code = ended.returncode
    if code:
        raise CdcError(
            ErrorKind.DIFFERENT if code == 1 else ErrorKind.SERVER_FAILED,
            f"wal2lake {arguments[0]} ended with exit code {code}",
        )
