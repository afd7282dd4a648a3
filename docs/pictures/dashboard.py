# ruff: noqa: INP001 - a script, run by path
"""Draw the panels of ``deploy/observe/dashboard.json`` from what a Prometheus knows.

``python docs/pictures/dashboard.py http://127.0.0.1:9090 300`` draws the last 300 seconds. The
stack's profile ``observe`` has a Prometheus, and Grafana, which draws the same panels.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any, Final

import httpx
import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.gridspec import GridSpec

HERE: Final = Path(__file__).resolve().parent
DASHBOARD: Final = HERE.parents[1] / "deploy" / "observe" / "dashboard.json"
INTERVAL: Final = "1m"  # of rates: twelve of the stack's scrapes
ROW_INCHES: Final = 0.42
UNITS: Final = {"s": "seconds", "ops": "events/s", "bytes": "MiB", "bool_yes_no": "1 = applying"}
Series = dict[str, tuple[list[float], list[float]]]


def series(prometheus: str, panel: dict[str, Any], seconds: float) -> Series:
    """Return times (seconds ago) and values of a panel's lines, by their names."""
    found: Series = {}
    now = time.time()
    for target in panel["targets"]:
        query = target["expr"].replace("$__rate_interval", INTERVAL)
        asked = {"query": query, "start": now - seconds, "end": now, "step": 5}
        answer = httpx.get(f"{prometheus}/api/v1/query_range", params=asked).raise_for_status()
        for line in answer.json()["data"]["result"]:
            points = [(float(at) - now, float(value)) for at, value in line["values"]]
            at, values = zip(*points, strict=True)
            found[name_of(target["legendFormat"], line["metric"])] = (list(at), list(values))
    return found


def name_of(legend: str, labels: dict[str, str]) -> str:
    """Return the legend with the labels in it, as Grafana does."""
    for label, value in labels.items():
        legend = legend.replace(f"{{{{{label}}}}}", value)
    return legend


def draw(axes: Axes, panel: dict[str, Any], lines: Series) -> None:
    """Draw one panel: its lines, or the newest number of each."""
    unit = panel["fieldConfig"]["defaults"]["unit"]
    scale = 2.0**20 if unit == "bytes" else 1.0
    title = panel["title"] + (f" ({UNITS[unit]})" if unit in UNITS else "")
    axes.set_title(title, fontsize=8, loc="left")
    if panel["type"] == "stat":
        shown = "\n".join(f"{values[-1] / scale:,.5g}" for _, values in lines.values())
        axes.text(0.5, 0.5, shown or "none", ha="center", va="center", fontsize=15)
        axes.set_xticks([])
        axes.set_yticks([])
        return
    for name, (at, values) in lines.items():
        axes.plot(at, [value / scale for value in values], label=name, linewidth=1.2)
    axes.set_ylim(bottom=0)
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.3)
    if lines:
        axes.legend(fontsize=6, loc="upper left", ncols=2)


def main(prometheus: str, seconds: float) -> None:
    """Write ``dashboard.png`` beside this file."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    height = max(one["gridPos"]["y"] + one["gridPos"]["h"] for one in panels)
    figure = plt.figure(figsize=(13, ROW_INCHES * height), layout="constrained")
    grid = GridSpec(height, 24, figure=figure)
    for panel in panels:
        at = panel["gridPos"]
        cell = grid[at["y"] : at["y"] + at["h"], at["x"] : at["x"] + at["w"]]
        draw(figure.add_subplot(cell), panel, series(prometheus, panel, seconds))
    figure.savefig(HERE / "dashboard.png", dpi=90)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
