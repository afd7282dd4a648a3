"""The benchmark computes ratios, and when commits became readable."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.tutorial.batches import batches, cover
from bench.tutorial.figures import Figures, keep, ratios
from cdc.demo.freshness_meter import FreshnessMeter

OURS = Figures(
    snapshot_rows_per_second=3000.0,
    landed_events_per_second=5000.0,
    applied_changes_per_second=2000.0,
    freshness_p50_seconds=2.0,
    freshness_p99_seconds=4.0,
    values_lost=0,
)
THEIRS = Figures(
    snapshot_rows_per_second=1000.0,
    landed_events_per_second=None,
    applied_changes_per_second=500.0,
    freshness_p50_seconds=20.0,
    freshness_p99_seconds=60.0,
    values_lost=7,
)


class Topics:
    """Stands in for the topics: offset and commit time in milliseconds of events, by topic."""

    def __init__(self, **events: list[tuple[int, int]]) -> None:
        self.events = events

    def first_after(self, topic: str, offset: int) -> int | None:
        return next((at for where, at in self.events[topic] if where >= offset), None)


def line(*, rows: int, ends: dict[str, int], trigger: int = 900, commit: int = 100) -> str:
    progress = {
        "batchId": 1,
        "numInputRows": rows,
        "timestamp": "1970-01-01T00:00:10.000Z",
        "durationMs": {"triggerExecution": trigger, "commitOffsets": commit},
        "sources": [{"endOffset": {topic: {"0": end} for topic, end in ends.items()}}],
    }
    return json.dumps(progress) + "\n"


def test_a_ratio_above_one_means_that_ours_is_better() -> None:
    assert ratios(OURS, THEIRS) == {
        "snapshot_rows_per_second": 3.0,
        "applied_changes_per_second": 4.0,
        "freshness_p50_seconds": 10.0,
        "freshness_p99_seconds": 15.0,
    }


def test_a_worse_figure_is_shown_as_worse() -> None:
    slow = replace(OURS, freshness_p99_seconds=120.0, snapshot_rows_per_second=500.0)

    better = ratios(slow, THEIRS)

    assert (better["freshness_p99_seconds"], better["snapshot_rows_per_second"]) == (0.5, 0.5)


def test_the_result_is_kept_with_what_it_was_measured_with(tmp_path: Path) -> None:
    path = keep(tmp_path, parameters={"rate": 100}, ours=OURS, theirs=THEIRS)

    kept = json.loads(path.read_text())

    assert kept["parameters"] == {"rate": 100}
    assert kept["wal2lake"]["applied_changes_per_second"] == 2000.0
    assert kept["tutorial"]["landed_events_per_second"] is None
    assert kept["times_better"]["freshness_p50_seconds"] == 10.0
    assert kept["machine"]["cpus"] >= 1


def test_a_batch_is_readable_before_its_offsets_are_committed(tmp_path: Path) -> None:
    progress = tmp_path / "progress"
    progress.write_text(line(rows=3, ends={"a": 7}) + '{"half a li')

    (batch,) = batches(progress)

    assert (batch.rows, batch.ends) == (3, {"a": 7})
    assert batch.readable_at == pytest.approx(10.8)


def test_without_progress_there_is_no_batch(tmp_path: Path) -> None:
    assert list(batches(tmp_path / "progress")) == []


def test_a_commit_counts_when_the_last_of_its_topics_has_it(tmp_path: Path) -> None:
    progress = tmp_path / "progress"
    progress.write_text(
        line(rows=2, ends={"a": 2, "b": 1}) + line(rows=2, ends={"a": 3, "b": 2}, trigger=5100)
    )
    topics = Topics(a=[(0, 1000), (1, 2000), (2, 9000)], b=[(0, 1000), (1, 2000)])
    freshness = FreshnessMeter()
    for milliseconds in (1000, 2000):
        freshness.add_commit(lsn=milliseconds, at=milliseconds / 1000)

    cover(freshness, list(batches(progress)), topics)

    # The second commit has an event in topic b that only the second batch holds.
    assert freshness.seconds == pytest.approx([10.8 - 1.0, 15.0 - 2.0])
