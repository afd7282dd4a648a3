"""Builds Helm from its Go module, and fetches the definitions of the Prometheus operator.

Go checks each module by its checksum database. Helm is built once, into wal2lake's cache.
"""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

from cdc.errors import CdcError, ErrorKind
from cdc.stack.artifacts.lock_file import cache_dir
from cdc.state import file_lock

HELM: Final = ("helm.sh/helm/v3", "v3.21.0", "cmd/helm")
OPERATOR: Final = ("github.com/prometheus-operator/prometheus-operator", "v0.85.0")
OLDEST_GO: Final = (1, 25)
"""The oldest Go that builds them."""
_USUAL: Final = Path("/usr/local/go/bin/go")


def why_none() -> str | None:
    """Return why there is no Helm here; None if there is, or it can be built."""
    go = _go()
    if go is None:
        return f"there is no Go: install {_text(OLDEST_GO)} or newer"
    found = _run(go, "env", "GOVERSION").strip().removeprefix("go")
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
    name, version = OPERATOR
    answer: dict[str, Any] = json.loads(
        _run(_go(), "mod", "download", "-json", f"{name}@{version}")
    )
    return Path(answer["Dir"]) / "example" / "prometheus-operator-crd"


def _helm() -> Path:
    return cache_dir() / f"helm-{HELM[1]}" / "helm"


def _build(program: Path) -> None:
    module, version, command = HELM
    with tempfile.TemporaryDirectory(dir=cache_dir(), prefix="helm-") as folder:
        _run(_go(), "install", f"{module}/{command}@{version}", place=Path(folder))
        program.parent.mkdir(exist_ok=True)
        (Path(folder) / "helm").rename(program)


def _go() -> Path | None:
    found = shutil.which("go")
    return Path(found) if found else _USUAL if _USUAL.exists() else None


def _run(go: Path | None, *arguments: str, place: Path | None = None) -> str:
    if go is None:
        raise CdcError(ErrorKind.PREREQUISITE, "there is no Go", remedy="install it")
    environment = {**os.environ, **({"GOBIN": str(place)} if place else {})}
    command = [str(go), *arguments]
    # Outside of the project: a go.mod above it would be taken for ours.
    done = subprocess.run(
        command, env=environment, cwd=go.parent, capture_output=True, text=True, check=False
    )
    if done.returncode:
        what = " ".join(command[:3])
        raise CdcError(ErrorKind.SERVER_FAILED, f"{what} failed", detail=done.stderr.strip()[-800:])
    return done.stdout


def _text(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))
