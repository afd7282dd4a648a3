"""Keeps the latest findings of the job's health watch, in a file that ``status`` reads."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from cdc.observe.hop_motion import Hop, Motion
from cdc.state.atomic_file import write_shared

_FILE: Final = "health.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class HopHealth:
    """Gives the health of one hop, and the reason if it does not move."""

    hop: Hop
    motion: Motion
    seconds: float  # how long it has had work without making progress
    why: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Holds the findings of the last look; ``age_seconds`` is their age when they are read."""

    pid: int
    age_seconds: float
    hops: tuple[HopHealth, ...]
    registry: str = ""  # why it does not answer; only new schemas need it
    unnoted: str = ""  # why structure changes may go unnoted in the source


def read(state_dir: Path, now: float) -> Health | None:
    """Return what a job wrote last, or None if none did or the file is damaged.

    ``now`` is ``time.monotonic()``, which all processes of the machine share.
    """
    try:
        record: dict[str, Any] = json.loads((state_dir / _FILE).read_text())
        hops = (
            HopHealth(**{**facts, "hop": Hop(facts["hop"]), "motion": Motion(facts["motion"])})
            for facts in record["hops"]
        )
        age = now - record["at"]
        more = {name: record[name] for name in ("registry", "unnoted")}
        return Health(pid=record["pid"], age_seconds=age, hops=tuple(hops), **more)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write(
    state_dir: Path, hops: list[HopHealth], at: float, *, registry: str = "", unnoted: str = ""
) -> None:
    """Replace the findings in one step; ``at`` is ``time.monotonic()`` of the look."""
    listed = [asdict(each) for each in hops]
    more = {"registry": registry, "unnoted": unnoted}
    said = {"pid": os.getpid(), "at": at, "hops": listed, **more}
    write_shared(state_dir / _FILE, json.dumps(said))
