"""Makes an image of a Debian release from its packages, where no image can be pulled."""

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from cdc.errors import CdcError, ErrorKind
from tools.images.engine import run

_CERTIFICATES: Final = Path("usr/local/share/ca-certificates")


def image_name(release: str) -> str:
    """Return the name of the image of a release, such as ``bookworm``."""
    return f"wal2lake-debian:{release}"


def make(release: str) -> None:
    """Bootstrap the release and import it; raise SERVER_FAILED if a command fails."""
    with tempfile.TemporaryDirectory(prefix="wal2lake-debian-") as folder:
        root = Path(folder) / "root"
        run("debootstrap", "--variant=minbase", "--include=ca-certificates", release, root)
        _trust_what_this_machine_trusts(root)
        for left in ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc"):
            shutil.rmtree(root / left, ignore_errors=True)
        _import(root, image_name(release))


def _trust_what_this_machine_trusts(root: Path) -> None:
    """Copy this machine's own certificate authorities: without them nothing may be downloaded."""
    own = Path("/") / _CERTIFICATES
    for certificate in own.glob("*.crt"):
        shutil.copy2(certificate, root / _CERTIFICATES)
    run("chroot", root, "update-ca-certificates")


def _import(root: Path, name: str) -> None:
    pack = ["tar", "--directory", str(root), "--create", "."]
    with subprocess.Popen(pack, stdout=subprocess.PIPE) as tar:
        done = subprocess.run(
            ["docker", "import", "-", name],
            stdin=tar.stdout,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode or tar.returncode:
        raise CdcError(ErrorKind.SERVER_FAILED, f"{name} cannot be made", detail=done.stderr[-800:])
