"""A change without a column of the table stops it; a snapshot row without it does not."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.event_applier import Stretch
from cdc.apply.table.structure_notes import BoundNote
from cdc.apply.table.table_content import TableContent
from cdc.apply.table.table_factory import TableFactory
from cdc.config import Job
from cdc.events.schema import Column, table_schema_from_avro
from cdc.events.structure.steps import Note
from cdc.events.structure.structure import Structure
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table.positions import Position
from cdc.land.log_rows import LogRows
from cdc.tables import TableMode
from tests.events.recorded import LOG_COLUMNS, recording
from tests.events.source import SCHEMA_ID, TABLE, TOPIC, Source
from tests.events.structures import column, structure
from tests.spark.apply.test_apply_is_fold import PLACEHOLDER

pytestmark = pytest.mark.spark

WRITTEN = recording("tables").schemas[SCHEMA_ID]
SCHEMA = table_schema_from_avro(WRITTEN, table=TABLE, key=("id",), mode=TableMode.KEYED)
KINDS = {"int": "int4", "string": "text", "binary": "bytea", "array<int>": "_int4"}


def structured(*more: str) -> Structure:
    """Return the structure of the events, with more text columns."""
    kinds = [(c.name, KINDS.get(c.type, "text")) for c in SCHEMA.columns]
    kinds += [(name, "text") for name in more]
    columns = [column(number, name, kind) for number, (name, kind) in enumerate(kinds, 1)]
    return structure(*columns, schema=TABLE.schema, table=TABLE.name)


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
    rows = spark.createDataFrame([m.row() for m in source.messages()], LOG_COLUMNS)
    last = source.messages()[-1].offset
    table.apply(
        Stretch(
            rows=LogRows.of(rows), topic=TOPIC, upto=last, schemas={SCHEMA_ID: WRITTEN}, notes=notes
        )
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
