"""Alerts and dashboard name metrics that there are."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
import yaml

from cdc.client.status.exposition import metrics
from cdc.job.monitor import _memory
from cdc.observe.stage_times import Histogram, StageTimes
from cdc.state.pace import Pace
from tests.unit.client.test_status_findings import well

FOLDER: Final = Path(__file__).resolve().parents[3] / "deploy" / "observe"
ALERTS: Final = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"][0]["rules"]
PANELS: Final = json.loads((FOLDER / "dashboard.json").read_text())["panels"]
QUERIES: Final = {
    **{f"alert {rule['alert']}": rule["expr"] for rule in ALERTS},
    **{
        f"panel {panel['title']} {target['refId']}": target["expr"]
        for panel in PANELS
        for target in panel["targets"]
    },
}
_SUFFIXES: Final = {
    "counter": ("_total",),
    "histogram": ("_bucket", "_count", "_sum"),
    "gauge": ("",),
}


def names() -> set[str]:
    """Return the names of all samples that a job can have."""
    pace = Pace(
        pid=7,
        age_seconds=0,
        asked_seconds=1.0,
        transactions=0,
        p50=None,
        p99=None,
        ways={},
        stages=StageTimes().as_json(),
        freshness=Histogram().as_json(),
    )
    families = [*metrics(replace(well(), pace=pace), []), _memory()]
    return {f"{one.name}{suffix}" for one in families for suffix in _SUFFIXES[one.type]}


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_names_metrics_that_there_are(query: str) -> None:
    used = set(re.findall(r"wal2lake_\w+", QUERIES[query]))

    assert used or "up{" in QUERIES[query]
    assert used <= names()


def test_panels_do_not_overlap() -> None:
    cells = [
        (x, y)
        for panel in PANELS
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]

    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
