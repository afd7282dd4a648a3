"""In a new epoch, nothing of the old one holds cuts up, and no torn transaction is continued."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from cdc.apply.table.applied_table import AppliedTable
from cdc.events.schema import TableSchema
from cdc.lake.records.epochs import Epoch
from tests.spark.recorded_pipeline import (
    PREFIX,
    RECORDED,
    TABLES,
    TOASTY,
    Pipeline,
    compared,
    ends_of,
    landed_topics,
    sorted_rows,
)

pytestmark = pytest.mark.spark
Record = dict[str, Any]

# Indexes, in the records, of TOASTY's only transaction (974), and the last of its BEGIN marker.
_FIRST, _REST, _END, _BEGUN = {15, 17}, {26, 27, 28, 29}, 30, 24


class Begun(Pipeline):
    """The job with an epoch: all tables except TOASTY were read again at the end of the old one."""

    def opened(self, schema: TableSchema) -> AppliedTable:
        table = super().opened(schema)
        if self.epoch is None or table.position.epoch == self.epoch.number:
            return table
        if schema is TOASTY:
            table.stop("changes of it were lost", remedy="wal2lake resnapshot --all")
        else:
            left = max(table.position.offset, self.epoch.left_behind_of_table(str(schema.table)))
            table.move(replace(table.position, epoch=self.epoch.number, offset=left))
        return table

    def begin(self, landed: list[Record]) -> None:
        left = {topic: end - 1 for topic, end in ends_of(landed).items()}
        self.epoch = Epoch(
            number=2,
            name=PREFIX,
            began_at=datetime.now(UTC),
            reason="slot is gone",
            lsn=2**40,
            left_behind=left,
        )
        self.start()


def parts(torn: str) -> tuple[list[Record], list[Record]]:
    """Return the records before the new epoch, with a torn transaction, and those in it."""
    records = list(enumerate(landed_topics()))
    before = [r for i, r in records if i < _BEGUN and (torn == "end" or i not in _FIRST)]
    if torn == "events":
        before.append(records[_END][1])
    gone = {*_REST, _END}
    return before, [r for i, r in records if i >= _BEGUN and i not in gone]


@pytest.mark.parametrize("torn", ["end", pytest.param("events", marks=pytest.mark.deep)])
def test_a_torn_transaction_of_the_old_epoch_holds_nothing_up(
    spark: SparkSession, tmp_path: Path, torn: str
) -> None:
    """Its END marker is missing, or its events; without an epoch, rounds would wait for either."""
    pipeline = Begun(spark, tmp_path)
    before, after = parts(torn)
    pipeline.land(before)
    pipeline.settle()
    old_rows, last_before = pipeline.rows(TOASTY), pipeline.ledger.last()
    assert last_before is not None
    assert last_before.landing_floor == 0  # the torn transaction holds the landing
    pipeline.begin(before)
    assert pipeline.inbox.waiting() == []

    pipeline.land(after)
    pipeline.settle()

    last = pipeline.ledger.last()
    assert last is not None
    assert (last.epoch, last.landing_floor) == (2, 2)
    assert last.cut > last_before.cut
    states = {entry.table: entry.state for entry in last.tables}
    assert states.pop("public.toasty") == "stopped"
    assert set(states.values()) == {"streaming"}
    assert pipeline.rows(TOASTY) == old_rows
    for schema in TABLES:
        if schema is not TOASTY:
            assert_equal_to_source(pipeline, schema)


def assert_equal_to_source(pipeline: Pipeline, schema: TableSchema) -> None:
    names = [column.name for column in compared(schema)]
    expected = RECORDED["expected"][schema.table.name]
    rows = sorted_rows(pipeline.rows(schema))
    assert rows == sorted_rows([{name: row[name] for name in names} for row in expected])


def test_events_of_the_old_epoch_that_land_late_are_not_applied(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The job was down when the epoch began, so the topics had more events than the log."""
    pipeline = Begun(spark, tmp_path)
    before, after = parts("end")
    pipeline.land(before[:10])
    pipeline.settle()
    old_rows = {str(s.table): pipeline.rows(s) for s in TABLES}
    pipeline.begin(before)

    pipeline.land(before[10:])
    pipeline.settle()

    assert {str(s.table): pipeline.rows(s) for s in TABLES} == old_rows
    pipeline.land(after)
    pipeline.settle()
    last = pipeline.ledger.last()
    assert last is not None
    assert last.landing_floor == 3
    assert last.lsn is not None


def test_a_note_does_not_resume_a_table_of_an_earlier_epoch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An epoch begins with new notes of all structures."""
    pipeline = Begun(spark, tmp_path)
    before, after = parts("end")
    pipeline.land(before)
    pipeline.settle()
    pipeline.begin(before)
    old_rows = pipeline.rows(TOASTY)
    topic = TOASTY.table.topic(PREFIX)
    monkeypatch.setattr(pipeline.tables, "take_noted", lambda: [topic])
    pipeline.land(after)
    pipeline.settle()

    pipeline.recovery.resume()

    assert not pipeline.tables.by_topic[topic].following
    assert pipeline.rows(TOASTY) == old_rows
