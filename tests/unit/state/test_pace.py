"""The job's pace is read as it was written."""

import json
import math
from pathlib import Path

import pytest

from cdc.observe.recent_freshness import Reached
from cdc.observe.stage_times import Histogram, StageTimes
from cdc.state import pace

WAYS = {"public.a": "driver", "public.b": "spark: 30,000 events"}


def written(folder: Path, reached: Reached) -> pace.Pace | None:
    pace.write(
        folder,
        10.0,
        asked_seconds=1.0,
        reached=reached,
        stages=StageTimes().as_json(),
        freshness=Histogram().as_json(),
        ways=WAYS,
    )
    return pace.read(folder, 12.5)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    found = written(tmp_path, Reached(transactions=3, p50=0.5, p99=2.0))
    assert found is not None
    assert (found.asked_seconds, found.transactions, found.p50, found.p99) == (1.0, 3, 0.5, 2.0)
    assert found.age_seconds == 2.5
    assert found.ways == WAYS


def test_without_transactions_there_is_no_freshness(tmp_path: Path) -> None:
    found = written(tmp_path, Reached(transactions=0, p50=math.nan, p99=math.nan))
    assert found is not None
    assert (found.p50, found.p99) == (None, None)


def test_the_histograms_are_in_the_file(tmp_path: Path) -> None:
    written(tmp_path, Reached(transactions=0, p50=math.nan, p99=math.nan))
    said = json.loads((tmp_path / pace.FILE).read_text())
    assert said["stages"]["commit"]["count"] == 0


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", '{"pid": 1, "at": "x"}'])
def test_a_damaged_file_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / pace.FILE).write_text(text)
    assert pace.read(tmp_path, 0.0) is None


def test_no_file_is_none(tmp_path: Path) -> None:
    assert pace.read(tmp_path, 0.0) is None
