"""Looks for changes of some writer schemas, as ``cdc.apply.table.missing_columns`` does by Spark.

There it is decided what they mean: they lack a column of the table.
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from cdc.apply.changes.lacking import PASSED_OVER
from cdc.apply.local.arrow import log_events
from cdc.apply.local.row_reader import RecordReader, event_op


def some_change(rows: pa.Table, schemas: Mapping[int, str]) -> bool:
    """Return whether rows of the log have a change that was written with one of the schemas.

    Raises NotLocalError for a schema with a type that the connector does not use.
    """
    readers = {number: RecordReader(text) for number, text in schemas.items()}
    suspects = rows.filter(pc.is_in(rows["value_schema_id"], pa.array(schemas, pa.int32())))
    ops = (
        event_op(readers[event.value_schema_id].read(event.value)[0])
        for event in log_events(suspects)
        if event.value_schema_id is not None
    )
    return any(op not in {None, PASSED_OVER} for op in ops)
