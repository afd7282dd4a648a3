"""The figures of each way: how they compare, and how they are shown and stored."""

import json
import os
import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psutil
from rich.console import Console
from rich.table import Table

from cdc import __version__
from cdc.observe.freshness import percentile


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The figures of one way; rates count what was readable in the tables at the end."""

    snapshot_rows_per_second: float
    landed_events_per_second: float | None  # None: this way keeps no log
    applied_changes_per_second: float
    freshness_p50_seconds: float
    freshness_p99_seconds: float
    values_lost: int  # cells with a placeholder instead of the source's value


SHOWN: Final = {
    "snapshot_rows_per_second": "snapshot rows/s",
    "landed_events_per_second": "landed events/s",
    "applied_changes_per_second": "applied changes/s",
    "freshness_p50_seconds": "freshness p50, s",
    "freshness_p99_seconds": "freshness p99, s",
    "values_lost": "values lost",
}
LESS_IS_BETTER: Final = {"freshness_p50_seconds", "freshness_p99_seconds"}


def p50_p99(seconds: list[float]) -> tuple[float, float]:
    """Return the median and the 99th percentile."""
    ordered = sorted(seconds)
    return percentile(ordered, 0.5), percentile(ordered, 0.99)


def ratios(ours: Figures, theirs: Figures) -> dict[str, float]:
    """Return how many times better ours is, for every figure that both have."""
    better = {}
    for name in SHOWN:
        mine, other = getattr(ours, name), getattr(theirs, name)
        if mine and other and name != "values_lost":
            better[name] = other / mine if name in LESS_IS_BETTER else mine / other
    return better


def show(console: Console, ours: Figures, theirs: Figures | None) -> None:
    """Print both ways side by side."""
    table = Table(title="wal2lake and the tutorial way", title_justify="left")
    table.add_column("")
    for name in ("wal2lake", "tutorial", "times better"):
        table.add_column(name, justify="right")
    better = ratios(ours, theirs) if theirs else {}
    for name, label in SHOWN.items():
        values = (getattr(ours, name), getattr(theirs, name) if theirs else None)
        ratio = f"{better[name]:.1f}" if name in better else ""
        table.add_row(label, *(_number(value) for value in values), ratio)
    console.print(table)


def keep(
    folder: Path, *, parameters: dict[str, Any], ours: Figures, theirs: Figures | None
) -> Path:
    """Write the result to a new file in ``folder`` and return the file."""
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    result = {
        "at": now.isoformat(timespec="seconds"),
        "version": __version__,
        "machine": _machine(),
        "parameters": parameters,
        "wal2lake": asdict(ours),
        "tutorial": asdict(theirs) if theirs else None,
        "times_better": ratios(ours, theirs) if theirs else None,
    }
    path = folder / f"{now:%Y%m%dT%H%M%SZ}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    return path


def _machine() -> dict[str, Any]:
    return {
        "cpus": os.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "load_at_the_end": [round(load, 1) for load in os.getloadavg()],
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
    }


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"  # noqa: PLR2004 - digits shown
