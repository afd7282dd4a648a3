"""Mount a file system that is small enough to fill."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[None]:
    """Mount a tmpfs for the block; skip the test if this user cannot mount (only root can)."""
    place.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"cannot mount a small file system: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(ballast: Path) -> None:
    """Fill the disk of the ballast file to its last block."""
    descriptor = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    try:
        while os.statvfs(ballast.parent).f_bavail:
            os.write(descriptor, bytes(2**16))
    finally:
        os.close(descriptor)
