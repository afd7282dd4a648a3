"""Refuses changes that lack a column of the table: the connector was kept from reading it."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.changes.decode import decode_envelope
from cdc.apply.changes.lacking import PASSED_OVER, lacking, stopped
from cdc.apply.local import missing_columns as local
from cdc.apply.local.not_local import NotLocalError
from cdc.events.structure.structure import Structure
from cdc.land.log_rows import LogRows


def refuse_lacking(part: LogRows, schemas: Mapping[int, str], structure: Structure) -> None:
    """Raise TABLE_STOPPED where a change among these events lacks a column of the structure.

    ``schemas`` are the writer schemas of the table's events, by id. Spark is asked only where the
    events are not in memory.
    """
    missing = lacking(schemas, structure)
    if missing and _some_change(part, {number: schemas[number] for number in missing}):
        raise stopped(missing)


def _some_change(part: LogRows, schemas: Mapping[int, str]) -> bool:
    if part.events is not None:
        try:
            return local.some_change(part.events, schemas)
        except NotLocalError:
            pass
    return some_change(part.frame(), schemas)


def some_change(rows: DataFrame, schemas: Mapping[int, str]) -> bool:
    """Return whether rows of the log have a change that was written with one of the schemas."""
    suspects = rows.where(F.col("value_schema_id").isin(sorted(schemas)))
    return not decode_envelope(suspects, schemas).where(F.col("op") != PASSED_OVER).isEmpty()
