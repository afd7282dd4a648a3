"""What must be there before anything is downloaded or started: Java, disk space."""

import errno
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cdc.errors import CdcError, ErrorKind

OLDEST_JAVA = 17
NEWEST_JAVA = 23  # the Hadoop client inside Spark 4.1 does not start on 24 and later

MINIMUM_FREE_BYTES = 500 * 1024 * 1024
"""Less than this in the state directory and the broker stops within minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    path: Path
    major: int


@cache
def find_java() -> Java:
    """``$JAVA_HOME/bin/java`` or the one on the path; raises PREREQUISITE when it is not fit."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if not found:
        raise _wrong_java("java is not installed" if not home else "JAVA_HOME has no bin/java")
    major = java_major(_version_text(Path(found)))
    if not OLDEST_JAVA <= major <= NEWEST_JAVA:
        raise _wrong_java(f"{found} is java {major}")
    return Java(path=Path(found), major=major)


def java_major(text: str) -> int:
    """17 of ``openjdk version "17.0.15"``, 8 of ``version "1.8.0_402"``, 0 of anything else."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match[1]) if match else 0


def _version_text(java: Path) -> str:
    result = subprocess.run([str(java), "-version"], capture_output=True, text=True, check=False)
    return result.stderr + result.stdout


def _wrong_java(message: str) -> CdcError:
    return CdcError(
        ErrorKind.PREREQUISITE,
        message,
        detail=f"java {OLDEST_JAVA} to {NEWEST_JAVA} is needed",
        remedy="install OpenJDK 17 (Debian: openjdk-17-jre-headless) or set JAVA_HOME",
    )


def check_disk(place: Path, needed: int = MINIMUM_FREE_BYTES) -> None:
    """Raises DISK_FULL when the file system of ``place`` has less than ``needed`` bytes free."""
    existing = next(path for path in (place, *place.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise CdcError(
            ErrorKind.DISK_FULL,
            f"{place} has {free // 2**20} MiB free, {needed // 2**20} MiB are needed",
            remedy="free space there, or choose another place (state_dir, WAL2LAKE_CACHE)",
        )


@contextmanager
def disk_full_named(place: Path) -> Iterator[None]:
    """Give the system's error for a full disk the name of the place and a remedy."""
    try:
        yield
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT}:
            raise
        raise CdcError(
            ErrorKind.DISK_FULL,
            f"no space left in {place}",
            remedy="free space there and run the command again",
        ) from None


def check(state_dir: Path) -> Java:
    """All of them; the first that is missing is named."""
    java = find_java()
    check_disk(state_dir)
    return java
