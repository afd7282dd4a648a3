"""The code that runs: ours as it is here, or as it was before, from the history."""

import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Final

from cdc.errors import CdcError, ErrorKind
from cdc.stack.artifacts.lock_file import cache_dir

REPOSITORY: Final = Path(__file__).parents[2]
BEFORE: Final = "044d5ed202254ff0e30f6b17184d4e9eebba3b10"
"""The last commit before the work on speed: what "today" means in its issue."""


OURS_NAME: Final = "ours"
BEFORE_NAME: Final = "before"


@dataclass(frozen=True, slots=True)
class Code:
    """Runs a tree of wal2lake's code."""

    name: str
    tree: Path

    def run(self, arguments: list[str], log: Path) -> int:
        """Run a ``wal2lake`` command of this tree; return its exit code."""
        return self._execute("cdc", arguments, log, self.tree)

    def run_module(self, module: str, arguments: list[str], log: Path, *, more: Path) -> None:
        """Run a module of the tree ``more`` with the code of this one.

        Raises SERVER_FAILED unless it ends with 0.
        """
        if self._execute(module, arguments, log, self.tree, more):
            raise CdcError(
                ErrorKind.SERVER_FAILED, f"{module} of {self.name} failed: {last_line(log)}"
            )

    def _execute(self, module: str, arguments: list[str], log: Path, *trees: Path) -> int:
        """Run a module; its output goes to the log."""
        # The working directory is the first place where Python looks for modules.
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, trees))}
        line = [sys.executable, "-m", module, *arguments]
        with log.open("ab") as output:
            done = subprocess.run(
                line, cwd=self.tree, env=environment, stdout=output, stderr=output, check=False
            )
        return done.returncode


def last_line(log: Path) -> str:
    """Return the last line of a log, nothing for an empty one."""
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def ours() -> Code:
    """Return the code of this checkout."""
    return Code(OURS_NAME, REPOSITORY)


def before() -> Code:
    """Return the code of before, unpacked into the cache with the jars that it asks for.

    Raises PREREQUISITE if the history does not have it, as in a shallow clone, and UNREACHABLE if
    a jar does not arrive.
    """
    tree = cache_dir() / f"bench-before-{BEFORE[:12]}"
    if not tree.is_dir():
        _unpack(tree)
    code = Code(BEFORE_NAME, tree)
    line = [sys.executable, "-m", "cdc.stack.artifacts"]
    environment = os.environ | {"PYTHONPATH": str(tree)}
    done = subprocess.run(line, cwd=tree, env=environment, check=False, capture_output=True)
    if done.returncode:
        raise CdcError(ErrorKind.UNREACHABLE, "the jars of the code of before did not arrive")
    return code


def _unpack(tree: Path) -> None:
    archive = subprocess.run(
        ["git", "-C", str(REPOSITORY), "archive", BEFORE, "cdc", "connectors", "jobs"],  # noqa: S607
        capture_output=True,
        check=False,
    )
    if archive.returncode:
        raise CdcError(
            ErrorKind.PREREQUISITE,
            f"commit {BEFORE[:12]}, from before, is not in this clone's history",
            remedy="git fetch --unshallow",
        )
    partial = tree.with_suffix(".partial")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(partial, filter="data")
    partial.rename(tree)
