"""Tells ``status``, in a file, how fast the job makes commits readable and how it applies them."""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from cdc.observe.recent_freshness import Reached
from cdc.state.atomic_file import write_shared

FILE: Final = "pace.json"
SECONDS: Final = 2.0
"""The time from one writing of the file to the next."""
DRIVER: Final = "driver"
"""The way of a batch that the job applied in its own process, without Spark."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Holds what a job said last; ``p50`` and ``p99`` are seconds, None without a transaction."""

    pid: int
    age_seconds: float
    asked_seconds: float  # job.freshness_seconds
    transactions: int  # in the cuts of the last minute
    p50: float | None
    p99: float | None
    ways: Mapping[str, str]
    """How the last batch of each table was applied: ``driver``, or ``spark:`` and why."""
    stages: Mapping[str, Any] = field(default_factory=dict)
    """The histogram of each stage's seconds, as cdc/observe/stage_times.py writes them."""
    freshness: Mapping[str, Any] = field(default_factory=dict)
    """The histogram of the seconds from commit to cut, since the job began."""


def write(
    state_dir: Path,
    at: float,
    *,
    asked_seconds: float,
    reached: Reached,
    stages: Mapping[str, Any],
    freshness: Mapping[str, Any],
    ways: Mapping[str, str],
) -> None:
    """Replace the file in one step; ``at`` is ``time.monotonic()``."""
    said = {
        "pid": os.getpid(),
        "at": at,
        "asked_seconds": asked_seconds,
        "transactions": reached.transactions,
        "p50": _finite(reached.p50),
        "p99": _finite(reached.p99),
        "stages": stages,
        "freshness": freshness,
        "ways": ways,
    }
    write_shared(state_dir / FILE, json.dumps(said))


def read(state_dir: Path, now: float) -> Pace | None:
    """Return what a job wrote last, or None if none did or the file is damaged.

    ``now`` is ``time.monotonic()``, which all processes of the machine share.
    """
    try:
        said: dict[str, Any] = json.loads((state_dir / FILE).read_text())
        return Pace(
            pid=said["pid"],
            age_seconds=now - said["at"],
            asked_seconds=said["asked_seconds"],
            transactions=said["transactions"],
            p50=said["p50"],
            p99=said["p99"],
            ways=dict(said["ways"]),
            stages=dict(said["stages"]),
            freshness=dict(said["freshness"]),
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None


def _finite(seconds: float) -> float | None:
    """JSON has no NaN."""
    return None if math.isnan(seconds) else seconds
