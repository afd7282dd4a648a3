"""The file of a run: everything that its figures were made of."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench.core.figure import Measured
from bench.core.machine import busy, load, machine, versions
from bench.core.sizes import Sizes

FORMAT: Final = 1
_NEEDED: Final = {
    "format": int,
    "began": str,
    "ended": str,
    "seconds": float,
    "seed": int,
    "sizes": dict,
    "machine": dict,
    "versions": dict,
    "load_before": list,
    "load_after": list,
    "busy_before": float,
    "figures": list,
    "left_out": list,
}


class Record:
    """Notes time and load at its creation; ``write`` adds the rest."""

    def __init__(self, sizes: Sizes, seed: int) -> None:
        self._began = datetime.now(UTC)
        self._before = load()
        self._busy = busy()
        self._sizes = sizes
        self._seed = seed

    def values(self, measured: Measured) -> dict[str, Any]:
        """Return the whole result as plain values."""
        ended = datetime.now(UTC)
        return {
            "format": FORMAT,
            "began": self._began.isoformat(timespec="seconds"),
            "ended": ended.isoformat(timespec="seconds"),
            "seconds": (ended - self._began).total_seconds(),
            "seed": self._seed,
            "sizes": asdict(self._sizes),
            "machine": machine(),
            "versions": versions(),
            "load_before": self._before,
            "load_after": load(),
            "busy_before": self._busy,
            **measured.to_json(),
        }


def write(path: Path, values: Mapping[str, Any]) -> None:
    """Write a result; raises ValueError if it lacks something."""
    check(values)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values, indent=1) + "\n")


def read(path: Path) -> dict[str, Any]:
    """Read a result; raises ValueError if it is none of this format."""
    values = json.loads(path.read_text())
    check(values)
    found: dict[str, Any] = values
    return found


def check(values: Mapping[str, Any]) -> None:
    """Raise ValueError unless the values are a result of this format."""
    wrong = [name for name, kind in _NEEDED.items() if not isinstance(values.get(name), kind)]
    if wrong:
        raise ValueError(f"a result has no or another {', '.join(wrong)}")
    if values["format"] != FORMAT:
        raise ValueError(f"a result of format {values['format']}, not {FORMAT}")
    Measured.from_json(values)
