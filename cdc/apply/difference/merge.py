"""Merges the difference of a reading into a table, in the same way in the job and in a rebuild."""

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
    """Merge a difference in one commit; ``rows`` have ``stored(schema)`` and ``_cdc_deleted``.

    The offset of the rows is that of ``position``: the table is there too, so none of its rows is
    newer. Raises INTERNAL for a table of inserts only, whose rows cannot be identified.
    """
    if schema.mode is TableMode.APPEND:
        raise CdcError(
            ErrorKind.INTERNAL,
            f"a difference cannot be merged into {schema.table}, which has inserts only",
            remedy="report this bug; to repair the table, replace it with a whole reading",
        )
    store.merge(spark, path, rows, difference_plan(schema), position)


def difference_plan(schema: TableSchema) -> MergePlan:
    """Return the plan of the merge: a row of the reading also replaces one of the same offset."""
    guard = f"source.{OFFSET} >= target.{OFFSET}"
    plan = merge_plan(schema, keep=False)
    return replace(plan, delete_when=f"{guard} AND source.{DELETED}", update_when=guard)
