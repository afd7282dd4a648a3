"""Refuses changes that lack a column of the table; cdc/apply/local/missing_columns.py is alike."""

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.changes.decode import decode_envelope
from cdc.apply.changes.lacking import PASSED_OVER, lacking, stopped
from cdc.events.structure.structure import Structure


def refuse_lacking(part: DataFrame, schemas: Mapping[int, str], structure: Structure) -> None:
    """Raise TABLE_STOPPED where a change among these events lacks a column of the structure.

    ``schemas`` are the writer schemas of the table's events, by id.
    """
    missing = lacking(schemas, structure)
    if not missing:
        return
    suspects = part.where(F.col("value_schema_id").isin(sorted(missing)))
    events = decode_envelope(suspects, {number: schemas[number] for number in missing})
    if not events.where(F.col("op") != PASSED_OVER).isEmpty():
        raise stopped(missing)
