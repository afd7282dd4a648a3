"""A file system of its own, small enough to be filled."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[None]:
    """Only root may mount one; skips where that cannot be done."""
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
    """To the last block."""
    descriptor = os.open(ballast, os.O_WRONLY | os.O_CREAT)
    try:
        while os.statvfs(ballast.parent).f_bavail:
            os.write(descriptor, bytes(2**16))
    finally:
        os.close(descriptor)
