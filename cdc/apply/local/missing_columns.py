"""Refuses changes that lack a column of the table, as ``cdc.apply.table.missing_columns`` does."""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from cdc.apply.changes.lacking import PASSED_OVER, lacking, stopped
from cdc.apply.local.arrow import log_events
from cdc.apply.local.row_reader import RecordReader, event_op
from cdc.events.structure.structure import Structure


def refuse_lacking(rows: pa.Table, schemas: Mapping[int, str], structure: Structure) -> None:
    """Raise TABLE_STOPPED where a change among rows of the log lacks a column of the structure.

    ``schemas`` are the writer schemas of the table's events, by id. Raises NotLocalError for a
    schema with a type that the connector does not use.
    """
    missing = lacking(schemas, structure)
    if not missing:
        return
    readers = {number: RecordReader(schemas[number]) for number in missing}
    suspects = rows.filter(pc.is_in(rows["value_schema_id"], pa.array(missing, pa.int32())))
    for event in log_events(suspects):
        assert event.value_schema_id is not None  # noqa: S101 - it is one of these
        record, _ = readers[event.value_schema_id].read(event.value)
        if event_op(record) not in {None, PASSED_OVER}:
            raise stopped(missing)
