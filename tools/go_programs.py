"""Builds programs from their Go modules, once, into wal2lake's cache.

Go checks each module by its checksum database.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cdc.errors import CdcError, ErrorKind
from cdc.stack.artifacts.lock_file import cache_dir
from cdc.state import file_lock


@dataclass(frozen=True, slots=True, kw_only=True)
class GoProgram:
    """A program, the module that has it, and the command's folder there."""

    name: str
    module: str
    version: str
    command: str


HELM: Final = GoProgram(name="helm", module="helm.sh/helm/v3", version="3.21.0", command="cmd/helm")
"""Renders the chart."""
SYFT: Final = GoProgram(
    name="syft", module="github.com/anchore/syft", version="1.57.1", command="cmd/syft"
)
"""Lists what is in an image."""
GATEWAY: Final = GoProgram(
    name="versitygw",
    module="github.com/versity/versitygw",
    version="1.8.0",
    command="cmd/versitygw",
)
"""Has the S3 API, and keeps objects as files."""
OLDEST_GO: Final = (1, 25)
"""The oldest Go that builds them."""
_USUAL: Final = Path("/usr/local/go/bin/go")


def why_none() -> str | None:
    """Return why no program can be built here; None if one can."""
    if _go() is None:
        return f"there is no Go: install {_text(OLDEST_GO)} or newer"
    found = run("env", "GOVERSION").strip().removeprefix("go")
    if tuple(int(part) for part in found.split(".")[:2]) < OLDEST_GO:
        return f"Go is {found}: install {_text(OLDEST_GO)} or newer"
    return None


def built(program: GoProgram) -> Path:
    """Return the program; the first call builds it, which takes minutes.

    Raises SERVER_FAILED with the compiler's last lines.
    """
    path = cache_dir() / f"{program.name}-{program.version}" / program.name
    with file_lock.hold(cache_dir() / f"{program.name}.lock"):
        if not path.exists():
            _build(program, path)
    return path


def downloaded(module: str, version: str, what: str) -> Path:
    """Return a part of a module: its folder (``Dir``) or its definition (``GoMod``)."""
    found: dict[str, str] = json.loads(run("mod", "download", "-json", f"{module}@v{version}"))
    return Path(found[what])


def run(*arguments: str, at: Path | None = None, environ: Mapping[str, str] | None = None) -> str:
    """Call Go and return its output; raise PREREQUISITE or SERVER_FAILED."""
    go = _go()
    if go is None:
        raise CdcError(ErrorKind.PREREQUISITE, "there is no Go", remedy="install it")
    # Outside of the project: a go.mod above it would be taken for ours.
    done = subprocess.run(
        [str(go), *arguments],
        env=environ,
        cwd=at or go.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        what = " ".join(arguments[:2])
        detail = done.stderr.strip()[-800:]
        raise CdcError(ErrorKind.SERVER_FAILED, f"go {what} failed", detail=detail)
    return done.stdout


def _build(program: GoProgram, path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=cache_dir(), prefix=f"{program.name}-") as folder:
        # Without C they run in any image.
        environ = {**os.environ, "GOBIN": folder, "CGO_ENABLED": "0"}
        run("install", f"{program.module}/{program.command}@v{program.version}", environ=environ)
        path.parent.mkdir(exist_ok=True)
        (Path(folder) / program.name).rename(path)


def _go() -> Path | None:
    found = shutil.which("go")
    return Path(found) if found else _USUAL if _USUAL.exists() else None


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
