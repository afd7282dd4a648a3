"""A change without a column of the table stops it; a snapshot row without it does not."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.event_applier import Stretch
from cdc.apply.table.missing_columns import refuse_lacking
from cdc.apply.table.structure_notes import BoundNote
from cdc.apply.table.table_content import TableContent
from cdc.apply.table.table_factory import TableFactory
from cdc.config import Job
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import Column
from cdc.events.structure.steps import Note
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table.positions import Position
from cdc.land.log_rows import LogRows
from tests.events.lacking import CASES, SCHEMA, SCHEMAS, Case, structured
from tests.events.local_lake import log_table
from tests.events.recorded import LOG_COLUMNS
from tests.events.source import TOPIC, Source
from tests.local_spark import frame_of
from tests.spark.apply.test_apply_is_fold import PLACEHOLDER

pytestmark = pytest.mark.spark


def opened(spark: SparkSession, root: Path) -> AppliedTable:
    """Return a table with a column that its events lack."""
    session, path = spark.newSession(), str(root / "t")
    schema = replace(SCHEMA, columns=(*SCHEMA.columns, Column("lost", "string")))
    at = Position(epoch=1, offset=-1)
    quarantine = Quarantine(str(root / "quarantine"))
    tables = TableFactory(
        ApplyContext(quarantine=quarantine, placeholder=PLACEHOLDER, policy=Job())
    )
    content = TableContent(schema=schema, position=at, structure=structured("lost"))
    return tables.created(session, path, content)


def applied(
    spark: SparkSession, table: AppliedTable, source: Source, notes: tuple[BoundNote, ...] = ()
) -> int:
    """Apply the source's events; return the number of rows in the lake afterwards."""
    rows = frame_of(spark, [m.row() for m in source.messages()], LOG_COLUMNS)
    last = source.messages()[-1].offset
    table.apply(
        Stretch(rows=LogRows.of(rows), topic=TOPIC, upto=last, schemas=SCHEMAS, notes=notes)
    )
    return spark.read.format("delta").load(table.path).count()


def test_a_change_without_the_column_stops_the_table_before_the_batch_is_applied(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, table = Source(placeholder=PLACEHOLDER), opened(spark, tmp_path)
    source.insert(1, 1, 1, op="r")
    source.insert(2, 1, 1)
    assert applied(spark, table, source) == 0
    assert table.stopped
    assert table.reason.startswith("a change arrived without lost")


def test_a_snapshot_row_without_the_column_is_accepted(spark: SparkSession, tmp_path: Path) -> None:
    source, table = Source(placeholder=PLACEHOLDER), opened(spark, tmp_path)
    source.insert(1, 1, 1, op="r")
    assert applied(spark, table, source) == 1
    assert not table.stopped


def test_a_change_after_the_note_that_drops_the_column_is_accepted(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, table = Source(placeholder=PLACEHOLDER), opened(spark, tmp_path)
    source.insert(1, 1, 1)
    dropped = BoundNote(id=1, after=-1, note=Note(structure=structured()), lsn=1)
    assert applied(spark, table, source, (dropped,)) == 1
    assert not table.stopped


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_same_changes_stop_the_table_whether_they_are_in_memory_or_not(
    spark: SparkSession, case: Case
) -> None:
    frame = frame_of(spark, [message.row() for message in case.messages], LOG_COLUMNS)

    def unused() -> DataFrame:
        raise AssertionError("Spark is not asked")

    for rows in (LogRows.of(frame), LogRows(unused, log_table(case.messages))):
        with pytest.raises(CdcError) if case.stops else nullcontext() as stopped:
            refuse_lacking(rows, SCHEMAS, case.structure)
        if stopped is not None:
            assert stopped.value.kind is ErrorKind.TABLE_STOPPED
            assert stopped.value.message.startswith("a change arrived without lost:")
