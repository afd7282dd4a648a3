"""What the job's watch saw last, kept in a file that ``status`` reads."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from cdc.observe.hops import Hop, Motion
from cdc.state.atomic_file import write_shared

_FILE: Final = "health.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class HopHealth:
    """A hop as the watch sees it; why it does not move, where it does not."""

    hop: Hop
    motion: Motion
    seconds: float  # for which it has had something to do and not done it
    why: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The last look; ``age_seconds`` is of the reader's moment."""

    pid: int
    age_seconds: float
    hops: tuple[HopHealth, ...]
    registry: str = ""  # what is known of one that does not answer: only a new schema needs it
    unnoted: str = ""  # why changes of a structure may not be noted in the source


def read(state_dir: Path, now: float) -> Health | None:
    """What a job wrote last, by ``time.monotonic`` of any process; None where none did."""
    try:
        said: dict[str, Any] = json.loads((state_dir / _FILE).read_text())
        hops = (
            HopHealth(**{**each, "hop": Hop(each["hop"]), "motion": Motion(each["motion"])})
            for each in said["hops"]
        )
        age = now - said["at"]
        more = {name: said[name] for name in ("registry", "unnoted")}
        return Health(pid=said["pid"], age_seconds=age, hops=tuple(hops), **more)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write(
    state_dir: Path, hops: list[HopHealth], at: float, *, registry: str = "", unnoted: str = ""
) -> None:
    """Replace what was written before in one step."""
    listed = [asdict(each) for each in hops]
    more = {"registry": registry, "unnoted": unnoted}
    said = {"pid": os.getpid(), "at": at, "hops": listed, **more}
    write_shared(state_dir / _FILE, json.dumps(said))
