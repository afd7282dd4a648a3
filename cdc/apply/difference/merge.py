"""What a reading of the source changed in a table, merged: the same in the job and in a rebuild."""

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import TableSchema
from cdc.lake.table import store
from cdc.lake.table.merge_plan import DELETED, OFFSET, MergePlan, merge_plan
from cdc.lake.table.positions import Position
from cdc.tables import TableMode


def merge_difference(
    spark: SparkSession, path: str, schema: TableSchema, rows: DataFrame, position: Position
) -> None:
    """One commit. ``rows`` have the columns ``stored(schema)`` and ``_cdc_deleted``.

    Their offset is the position's: the table stands there, so a row of it is never newer. Raises
    INTERNAL for a table of inserts only, whose rows have nothing to be found by.
    """
    if schema.mode is TableMode.APPEND:
        raise CdcError(
            ErrorKind.INTERNAL,
            f"a difference cannot be merged into {schema.table}, which has inserts only",
            remedy="report this; a whole reading replaces such a table",
        )
    store.merge(spark, path, rows, difference_plan(schema), position)


def difference_plan(schema: TableSchema) -> MergePlan:
    """A row of the reading holds against one that was written at the same offset."""
    guard = f"source.{OFFSET} >= target.{OFFSET}"
    plan = merge_plan(schema, keep=False)
    return replace(plan, delete_when=f"{guard} AND source.{DELETED}", update_when=guard)
