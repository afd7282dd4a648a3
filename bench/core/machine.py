"""The machine and the versions that a result was measured with."""

import os
import platform
import subprocess
from importlib.metadata import version
from typing import Any, Final

import psutil

from cdc import __version__
from cdc.stack.artifacts.prerequisites import find_java

PACKAGES: Final = ("pyspark", "delta-spark", "deltalake", "pyarrow", "numpy", "fastavro", "psycopg")


def machine() -> dict[str, Any]:
    """Return processor, memory and system, without names of the machine or its user."""
    return {
        "cpus": os.cpu_count(),
        "processor": _processor(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "system": platform.platform(terse=True),
    }


def versions() -> dict[str, str]:
    """Return the versions of wal2lake, its commit, and what it runs on."""
    packages = {name: version(name) for name in PACKAGES}
    java = str(find_java().major)
    return {
        "wal2lake": __version__,
        "commit": _commit(),
        "python": platform.python_version(),
        "java": java,
        **packages,
    }


def load() -> list[float]:
    """Return the load average over 1, 5 and 15 minutes."""
    return [round(value, 2) for value in os.getloadavg()]


def busy(seconds: float = 1.0) -> float:
    """Return the share of all processors that is busy, over so many seconds."""
    return psutil.cpu_percent(interval=seconds) / 100


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:  # noqa: PTH123 - a kernel's file
            names = [line.partition(":")[2].strip() for line in lines if "model name" in line]
    except OSError:
        names = []
    return names[0] if names else platform.processor()


def _commit() -> str:
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty"],  # noqa: S607 - git of the path
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()
