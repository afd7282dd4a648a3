"""A table that was rewritten under the first snapshot stops, and stops again when it goes on."""

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


def apply(spark: SparkSession, found: AppliedTable) -> None:
    rows = spark.createDataFrame([], LOG_COLUMNS)
    found.apply(
        Stretch(rows=rows, topic="t", upto=-1, schemas={}, notes=[REWRITTEN], snapshot_end=END)
    )


def test_it_had_no_row_for_the_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    found = table(spark, tmp_path)
    for _ in range(2):
        apply(spark, found)

        assert found.stopped
        assert found.reason.startswith(f"[{Reason.SNAPSHOT_BLIND.value}] it was rewritten")
        assert found.structure == BEFORE
        found.resume()  # as when a later change of its structure may undo an earlier one


@pytest.mark.parametrize("seen", [{"reads": 1}, {"reading": 3}])
def test_one_that_was_read_follows(
    spark: SparkSession, tmp_path: Path, seen: dict[str, int]
) -> None:
    found = table(spark, tmp_path, **seen)

    apply(spark, found)

    assert not found.stopped
    assert found.structure == AFTER
    assert {c.name: c.type for c in found.schema.columns} == {"id": "int", "n": "bigint"}
