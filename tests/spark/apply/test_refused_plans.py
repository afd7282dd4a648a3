"""A plan that Delta or Spark refuses stops its table, and the others go on."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from cdc.apply.local.driver_commit import Committed
from cdc.apply.table import batch
from cdc.apply.table.driver_way import DriverWay
from cdc.apply.table.table_content import TableContent
from cdc.events.schema import TableSchema
from cdc.lake.table.merge_plan import MergePlan, merge_plan
from tests.spark.recorded_pipeline import ORDERS, Pipeline, landed_topics

pytestmark = pytest.mark.spark

SPOILED: Final[dict[str, tuple[str, Callable[[MergePlan], dict[str, Any]]]]] = {
    "by Delta": (
        "DELTA_MERGE_UNRESOLVED_EXPRESSION",
        lambda plan: {"update_set": {**(plan.update_set or {}), "`note`": "source.nowhere"}},
    ),
    "by Delta, its condition": (
        "DELTA_MERGE_UNRESOLVED_EXPRESSION",
        lambda _: {"update_when": "target.nowhere > 0"},
    ),
}


@pytest.mark.parametrize("how", SPOILED)
def test_a_refused_plan_stops_only_its_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """PySpark fails to parse Delta's error, and raises an error about that instead."""
    condition, spoil = SPOILED[how]

    def spoiled(schema: TableSchema, *, keep: bool) -> MergePlan:
        plan = merge_plan(schema, keep=keep)
        return replace(plan, **spoil(plan)) if schema.table == ORDERS.table else plan

    def left_to_spark(way: DriverWay, content: TableContent, *given: Any) -> Committed | None:  # noqa: ANN401
        return None if content.schema.table == ORDERS.table else applied(way, content, *given)

    applied = DriverWay.applied
    monkeypatch.setattr(batch, "merge_plan", spoiled)
    monkeypatch.setattr(DriverWay, "applied", left_to_spark)  # only Spark has plans
    pipeline = Pipeline(spark, tmp_path)
    records = landed_topics()
    for part in (records[: len(records) // 2], records[len(records) // 2 :]):
        pipeline.land(part)
        pipeline.settle()

    (stopped,) = pipeline.stopped()
    assert stopped.schema.table == ORDERS.table
    assert f"the lake's table refused the change: {condition}" in stopped.reason
    last = pipeline.ledger.last()
    assert last is not None
    assert sorted({entry.state for entry in last.tables}) == ["stopped", "streaming"]
