"""Turn the status into metrics of Prometheus. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Any, Final

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric

from cdc.client.status.status import Status, TableStatus
from cdc.client.status.status_findings import StatusFinding
from cdc.observe.hop_motion import Motion
from cdc.state.pace import DRIVER
from cdc.tables import TableState

MOST_TABLES: Final = 1000
"""Tables with metrics of their own; of more, those with the worst states and lags."""
_UNWELL: Final = frozenset({TableState.STOPPED.value, TableState.DEGRADED.value})
Amount = Callable[[TableStatus], float | None]
_OF_TABLES: Final[tuple[tuple[str, str, Amount], ...]] = (
    ("lag_events", "Events in Kafka that no cut has.", lambda table: table.lag_offsets),
    ("lag_bytes", "Bytes of WAL beyond the newest cut.", lambda table: table.lag_bytes),
    ("lag_seconds", "Age of the cut; 0 if nothing waits.", lambda table: table.lag_seconds),
    ("well", "0 if it is stopped or degraded, else 1.", lambda table: not table.reason),
)


def metrics(now: Status, problems: Iterable[StatusFinding]) -> Iterator[Metric]:
    """Yield the metrics of one moment; a value that is not known now is left out."""
    yield from _of_job(now)
    yield from _of_cut(now)
    yield from _of_tables(now.tables)
    yield from _of_derived(now)
    yield from _of_source(now)
    yield from _of_hops(now)
    yield from _of_pace(now)
    yield _by_label("problems", "Findings of status, by kind.", "kind", _counts(problems))


def _of_job(now: Status) -> Iterator[Metric]:
    yield _gauge(
        "job_applying", "1 if the job applies.", now.job.alive and now.job.state == "applying"
    )
    states = [operation.state for operation in now.operations]
    amounts = {state: float(states.count(state)) for state in sorted(set(states))}
    yield _by_label("operations", "Operations that have not ended, by state.", "state", amounts)
    restarts = {server.name: float(server.restarts) for server in now.servers}
    yield _by_label("server_restarts", "Restarts by the supervisor.", "server", restarts)


def _of_cut(now: Status) -> Iterator[Metric]:
    yield _gauge("cut", "Number of the newest cut.", now.cut)
    yield _gauge("cut_lsn_bytes", "Position of the newest cut in the WAL.", now.lsn)
    at = None if now.published_at is None else now.published_at.timestamp()
    yield _gauge("cut_published_timestamp_seconds", "When it was published.", at)


def _of_tables(tables: tuple[TableStatus, ...]) -> Iterator[Metric]:
    shown = sorted(tables, key=_worst_first)[:MOST_TABLES]
    yield _gauge("tables", "Tables in the newest cut.", len(tables))
    yield _gauge(
        "tables_left_out", "Tables without metrics of their own.", len(tables) - len(shown)
    )
    for name, text, amount in _OF_TABLES:
        amounts = {table.table: amount(table) for table in shown}
        yield _by_label(f"table_{name}", text, "table", amounts)
    refused = CounterMetricFamily(
        "wal2lake_table_refused", "Events of the table in quarantine.", labels=["table"]
    )
    applied = CounterMetricFamily(
        "wal2lake_table_events", "Events applied.", labels=["table", "operation"]
    )
    for table in shown:
        refused.add_metric([table.table], table.refused)
        for operation, count in table.events.items():
            applied.add_metric([table.table, operation], count)
    yield from (refused, applied)


def _of_derived(now: Status) -> Iterator[Metric]:
    well = {one.table: float(one.state not in _UNWELL) for one in now.derived}
    yield _by_label("derived_well", "0 if it is stopped or degraded, else 1.", "table", well)
    behind = {one.table: float((now.cut or 0) - one.at_cut) for one in now.derived}
    text = "How many cuts a derived table is behind the newest."
    yield _by_label("derived_cuts_behind", text, "table", behind)


def _worst_first(table: TableStatus) -> tuple[bool, float, str]:
    return not table.reason, -(table.lag_offsets or 0), table.table


def _of_source(now: Status) -> Iterator[Metric]:
    source = now.source
    retained = source.retained_bytes if source else None
    yield _gauge("slot_retained_bytes", "WAL that the slot keeps at the source.", retained)
    yield _gauge("slot_active", "1 if the slot is read.", source.slot_active if source else None)
    running = now.connector.state == "RUNNING" if now.connector else None
    yield _gauge("connector_running", "1 if the connector and its task run.", running)


def _of_hops(now: Status) -> Iterator[Metric]:
    hops = now.health.hops if now.health else ()
    moves = {hop.hop.value: float(hop.motion is not Motion.STANDS) for hop in hops}
    yield _by_label("hop_moves", "0 if a hop has work and stands still.", "hop", moves)
    seconds = {hop.hop.value: hop.seconds for hop in hops}
    text = "How long a hop has had work without progress."
    yield _by_label("hop_waiting_seconds", text, "hop", seconds)


def _of_pace(now: Status) -> Iterator[Metric]:
    pace = now.pace
    if pace is None:
        return
    yield _gauge("freshness_asked_seconds", "job.freshness_seconds.", pace.asked_seconds)
    by_driver = sum(way == DRIVER for way in pace.ways.values())
    yield _gauge("tables_applied_by_driver", "Tables whose last batch needed no Spark.", by_driver)
    fresh = HistogramMetricFamily("wal2lake_freshness_seconds", "From commit to readable.")
    _add(fresh, [], pace.freshness)
    stages = HistogramMetricFamily(
        "wal2lake_stage_seconds", "Time of each stage of a round.", labels=["stage"]
    )
    for stage, histogram in pace.stages.items():
        _add(stages, [stage], histogram)
    yield from (fresh, stages)


def _add(family: HistogramMetricFamily, labels: list[str], histogram: Mapping[str, Any]) -> None:
    """Add a histogram, whose buckets Prometheus wants each with all below it."""
    if histogram:
        bounds = ("+Inf" if bound == "inf" else bound for bound in histogram["buckets"])
        totals = accumulate(histogram["buckets"].values())
        buckets = list(zip(bounds, map(float, totals), strict=True))
        family.add_metric(labels, buckets, histogram["seconds"])


def _gauge(name: str, text: str, value: float | None) -> Metric:
    family = GaugeMetricFamily(f"wal2lake_{name}", text)
    if value is not None:
        family.add_metric([], float(value))
    return family


def _by_label(name: str, text: str, label: str, values: Mapping[str, float | None]) -> Metric:
    family = GaugeMetricFamily(f"wal2lake_{name}", text, labels=[label])
    for of, value in values.items():
        if value is not None:
            family.add_metric([of], float(value))
    return family


def _counts(problems: Iterable[StatusFinding]) -> dict[str, float]:
    kinds = [problem.kind.value for problem in problems]
    return {kind: float(kinds.count(kind)) for kind in sorted(set(kinds))}
