"""A table that was rewritten during the first snapshot stops, and stops again if resumed."""

from pathlib import Path
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession

from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.event_applier import Stretch
from cdc.apply.table.structure_notes import BoundNote
from cdc.apply.table.table_content import TableContent
from cdc.apply.table.table_factory import TableFactory
from cdc.config import Job
from cdc.errors import Reason
from cdc.events.schema import TableSchema
from cdc.events.structure.steps import Note
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table.positions import Position
from cdc.land.log_rows import LogRows
from cdc.land.log_table import LOG_COLUMNS
from cdc.tables import TableMode
from tests.events.structures import column, structure

pytestmark = pytest.mark.spark

ID: Final = column(1, "id", "int4", not_null=True)
BEFORE: Final = structure(ID, column(2, "n", "int4"))
AFTER: Final = structure(ID, column(2, "n", "int8"))
END: Final = 200
REWRITTEN: Final = BoundNote(id=7, after=-1, note=Note(structure=AFTER, rewrite=4), lsn=END)


def table(spark: SparkSession, root: Path, **position: Any) -> AppliedTable:  # noqa: ANN401
    session, path = spark.newSession(), str(root / "t")
    columns = tuple(each.column for each in BEFORE.followed)
    schema = TableSchema(table=BEFORE.table, columns=columns, key=("id",), mode=TableMode.KEYED)
    at = Position(**{"epoch": 1, "offset": -1, **position})
    quarantine = Quarantine(str(root / "quarantine"))
    tables = TableFactory(ApplyContext(quarantine=quarantine, placeholder="-", policy=Job()))
    return tables.created(session, path, TableContent(schema=schema, position=at, structure=BEFORE))


def apply(spark: SparkSession, rewritten: AppliedTable) -> None:
    """Apply the note of the rewrite, without any event."""
    rows = spark.createDataFrame([], LOG_COLUMNS)
    rewritten.apply(
        Stretch(
            rows=LogRows.of(rows),
            topic="t",
            upto=-1,
            schemas={},
            notes=[REWRITTEN],
            snapshot_end=END,
        )
    )


def test_a_table_without_a_row_of_the_snapshot_stops(spark: SparkSession, tmp_path: Path) -> None:
    rewritten = table(spark, tmp_path)
    for _ in range(2):
        apply(spark, rewritten)

        assert rewritten.stopped
        assert rewritten.reason.startswith(f"[{Reason.SNAPSHOT_BLIND.value}] it was rewritten")
        assert rewritten.structure == BEFORE
        rewritten.resume()  # as when a later change of its structure may undo an earlier one


@pytest.mark.parametrize("seen", [{"reads": 1}, {"reading": 3}])
def test_a_table_with_rows_of_the_snapshot_or_a_reading_goes_on(
    spark: SparkSession, tmp_path: Path, seen: dict[str, int]
) -> None:
    rewritten = table(spark, tmp_path, **seen)

    apply(spark, rewritten)

    assert not rewritten.stopped
    assert rewritten.structure == AFTER
    assert {c.name: c.type for c in rewritten.schema.columns} == {"id": "int", "n": "bigint"}
