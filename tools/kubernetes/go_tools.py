"""Builds Helm from its Go module, and fetches the definitions of the Prometheus operator.

Go checks each module by its checksum database. Helm is built once, into wal2lake's cache.
"""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cdc.errors import CdcError, ErrorKind
from cdc.stack.artifacts.lock_file import cache_dir
from cdc.state import file_lock

HELM: Final = ("helm.sh/helm/v3", "3.21.0", "cmd/helm")
OPERATOR: Final = ("github.com/prometheus-operator/prometheus-operator", "0.85.0")
OLDEST_GO: Final = (1, 25)
"""The oldest Go that builds them."""
_USUAL: Final = Path("/usr/local/go/bin/go")


def why_none() -> str | None:
    """Return why there is no Helm here; None if there is, or it can be built."""
    if _go() is None:
        return f"there is no Go: install {_text(OLDEST_GO)} or newer"
    found = run("env", "GOVERSION").strip().removeprefix("go")
    if tuple(int(part) for part in found.split(".")[:2]) < OLDEST_GO:
        return f"Go is {found}: install {_text(OLDEST_GO)} or newer"
    return None


def helm() -> Path:
    """Return the program; the first call builds it, which takes minutes.

    Raises SERVER_FAILED with the compiler's last lines.
    """
    program = _helm()
    with file_lock.hold(cache_dir() / "helm.lock"):
        if not program.exists():
            _build(program)
    return program


def operator() -> Path:
    """Return the folder with the definitions of the Prometheus operator's kinds."""
    return downloaded(*OPERATOR, "Dir") / "example" / "prometheus-operator-crd"


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


def _helm() -> Path:
    return cache_dir() / f"helm-{HELM[1]}" / "helm"


def _build(program: Path) -> None:
    module, version, command = HELM
    with tempfile.TemporaryDirectory(dir=cache_dir(), prefix="helm-") as folder:
        environ = {**os.environ, "GOBIN": folder}
        run("install", f"{module}/{command}@v{version}", environ=environ)
        program.parent.mkdir(exist_ok=True)
        (Path(folder) / "helm").rename(program)


def _go() -> Path | None:
    found = shutil.which("go")
    return Path(found) if found else _USUAL if _USUAL.exists() else None


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
