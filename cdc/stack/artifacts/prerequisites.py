"""Checks what must be present before anything is downloaded or started: Java and disk space."""

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
"""With less than this free in the state directory, the broker stops within minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """Describes a Java program that fits: its major version, and what it says of its build."""

    path: Path
    major: int
    version: str


@cache
def find_java() -> Java:
    """Return ``$JAVA_HOME/bin/java``, else the ``java`` on the path.

    Raises PREREQUISITE if there is none or its version is not supported.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if not java:
        raise _wrong_java("java is not installed" if not home else "JAVA_HOME has no bin/java")
    version = _version_text(Path(java))
    major = java_major(version)
    if not OLDEST_JAVA <= major <= NEWEST_JAVA:
        raise _wrong_java(f"{java} is java {major}")
    return Java(path=Path(java), major=major, version=version)


def java_major(text: str) -> int:
    """Return the major version in the output of ``java -version``, or 0 if it has none.

    ``openjdk version "17.0.15"`` is 17, ``version "1.8.0_402"`` is 8.
    """
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
    """Raise DISK_FULL if the file system of ``place`` has less than ``needed`` bytes free."""
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
    """Turn the system's error for a full disk into DISK_FULL, with the place and a remedy."""
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
    """Check everything; raises PREREQUISITE or DISK_FULL for the first failure.

    Returns the Java to use.
    """
    java = find_java()
    check_disk(state_dir)
    return java
