"""The metrics of a status, as Prometheus reads them."""

from dataclasses import replace

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from cdc.client.status.exposition import MOST_TABLES, metrics
from cdc.client.status.status import OPERATIONS, Status
from cdc.client.status.status_findings import findings
from cdc.observe.stage_times import Histogram, StageTimes
from cdc.state.pace import Pace
from tests.unit.client.test_status_findings import derived, table, well

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scraped(now: Status) -> Samples:
    """Return the samples by name and labels, after the way through the text format."""

    class Once(Collector):
        def collect(self) -> list[Metric]:
            return list(metrics(now, findings(now)))

    registry = CollectorRegistry()
    registry.register(Once())
    text = generate_latest(registry).decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[f"wal2lake_{name}", tuple(sorted(labels.items()))]


def test_each_table_has_its_lag_and_its_events() -> None:
    events = dict(zip(OPERATIONS, range(10, 15), strict=True))
    one = replace(table("streaming"), lag_offsets=7, lag_bytes=800, lag_seconds=2.5, events=events)

    found = scraped(replace(well(), tables=(one,)))

    assert value(found, "table_lag_events", table="a.b") == 7
    assert value(found, "table_lag_bytes", table="a.b") == 800
    assert value(found, "table_lag_seconds", table="a.b") == 2.5
    assert value(found, "table_well", table="a.b") == 1
    assert value(found, "table_refused_total", table="a.b") == 2
    assert value(found, "table_events_total", table="a.b", operation="updates") == 11
    assert value(found, "table_events_total", table="a.b", operation="truncates") == 14


def test_a_derived_table_has_its_state_and_its_distance_to_the_cut() -> None:
    some = (
        derived("stopped", "a reason", at_cut=3),
        replace(derived("streaming"), table="marts.b"),
    )

    found = scraped(replace(well(), cut=5, derived=some))

    assert value(found, "derived_well", table="marts.a") == 0
    assert value(found, "derived_cuts_behind", table="marts.a") == 2
    assert value(found, "derived_well", table="marts.b") == 1
    assert value(found, "derived_cuts_behind", table="marts.b") == 0


def test_what_is_not_known_is_left_out() -> None:
    one = replace(table("streaming"), lag_offsets=None, lag_seconds=None)
    found = scraped(replace(well(), tables=(one,), source=None, cut=None))
    names = {name for name, _ in found}

    assert not names & {"wal2lake_table_lag_events", "wal2lake_slot_active", "wal2lake_cut"}
    assert "wal2lake_table_lag_bytes" in names


def test_of_too_many_tables_the_worst_are_shown() -> None:
    good = [replace(table("streaming"), table=f"s.t{n}") for n in range(MOST_TABLES)]
    bad = replace(table("stopped", "a reason"), table="s.zz")
    behind = replace(table("streaming"), table="s.zy", lag_offsets=5)

    found = scraped(replace(well(), tables=(*good, behind, bad)))

    assert value(found, "table_well", table="s.zz") == 0
    assert value(found, "table_lag_events", table="s.zy") == 5
    assert sum(name == "wal2lake_table_well" for name, _ in found) == MOST_TABLES
    assert value(found, "tables") == MOST_TABLES + 2
    assert value(found, "tables_left_out") == 2


def test_histograms_count_all_that_is_below_a_bound() -> None:
    fresh, stages = Histogram(), StageTimes()
    for seconds in (0.3, 0.4, 99.0):
        fresh.add(seconds)
    pace = Pace(
        pid=7,
        age_seconds=0,
        asked_seconds=1.0,
        transactions=3,
        p50=0.4,
        p99=99.0,
        ways={"a.b": "driver", "a.c": "spark: 30,000 events"},
        stages=stages.as_json(),
        freshness=fresh.as_json(),
    )

    found = scraped(replace(well(), pace=pace))

    assert value(found, "freshness_seconds_bucket", le="0.2") == 0
    assert value(found, "freshness_seconds_bucket", le="0.5") == 2
    assert value(found, "freshness_seconds_bucket", le="+Inf") == 3
    assert value(found, "freshness_seconds_count") == 3
    assert value(found, "freshness_seconds_sum") == 99.7
    assert value(found, "stage_seconds_count", stage="commit") == 0
    assert value(found, "tables_applied_by_driver") == 1


def test_findings_are_counted_by_kind() -> None:
    found = scraped(replace(well(), tables=(table("stopped", "why"), table("stopped", "why"))))

    assert value(found, "problems", kind="table_stopped") == 2
