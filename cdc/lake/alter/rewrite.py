"""Rewrites all rows of a small table without Spark, in one commit."""

import json
import time
from typing import Any, Final

import pyarrow as pa

from cdc.lake.alter.rewriting import Cast, Rewriting
from cdc.lake.commit.column_ids import LAST_ID, ColumnIds
from cdc.lake.commit.combined import CombineError, rows_left, stored_rows
from cdc.lake.commit.data_file import arrow_schema
from cdc.lake.commit.marks import DeletedRows
from cdc.lake.commit.protocol import TakeMergeError, refusal
from cdc.lake.commit.put import put_entry
from cdc.lake.commit.replay import TableState
from cdc.lake.commit.snapshot import LogReader
from cdc.lake.commit.table_metadata import Metadata
from cdc.lake.create.table import described
from cdc.lake.create.whole_table import whole_entry, written
from cdc.lake.files.store_of import store_of
from cdc.lake.table import store

MOST_BYTES: Final = 8 << 20
"""Of a table's data files; a larger table is rewritten by Spark, on all cores."""


def rewrite_without_spark(path: str, change: Rewriting, metadata: str) -> int:
    """Rewrite the rows of the table at ``path`` in one commit; return its version.

    The commit has ``metadata``, the position. Raises TakeMergeError if Spark has to do it, CONFLICT
    if another commit came first, CHAIN_BROKEN if the log cannot be read, or OSError.
    """
    log, files, millis = LogReader(path), store_of(path), int(time.time() * 1000)
    state = log.newest()
    before = _permitted(state)
    rows = change.rows(_rows(path, state, before))
    after = _cast(before, change) if isinstance(change, Cast) else before.action
    made = written(files, Metadata.parse(after), rows)
    files.settle()
    head = [{"metaData": dict(after)}] if after is not before.action else []
    log.refuse_changed()
    put_entry(files, state.version + 1, whole_entry(head, state, made, metadata, millis))
    return state.version + 1


def _permitted(state: TableState) -> Metadata:
    protocol, metadata = state.described()
    if (reason := refusal(protocol, metadata)) is not None:
        raise TakeMergeError(reason)
    if sum(file.size for file in state.files.values()) > MOST_BYTES:
        raise TakeMergeError("it is large")
    return metadata


def _rows(path: str, state: TableState, metadata: Metadata) -> pa.Table:
    """Return all rows that are not deleted, in the table's columns."""
    files, schema = store_of(path), arrow_schema(metadata)
    deleted = DeletedRows(path, files.read)
    parts = [schema.empty_table()]
    try:
        for file in state.files.values():
            stored = rows_left(stored_rows(files, file, metadata), deleted.of(file))
            parts.append(pa.table(stored.columns, schema=schema))
    except CombineError as error:
        raise TakeMergeError(str(error)) from None
    return pa.concat_tables(parts)


def _cast(table: Metadata, change: Cast) -> dict[str, Any]:
    """Return the ``metaData`` action in which the column has the new type.

    It gets an id and a name in data files of its own, as a new column does: old files, which older
    versions have, keep the old type.
    """
    if (last := table.properties.get(LAST_ID)) is None:
        raise TakeMergeError(f"it lacks the property {LAST_ID}")
    ids, (new,) = ColumnIds(int(last)), described(store.listed(change.column))
    fields = [
        ids.field({**field, "type": new["type"]}) if field["name"] == change.column.name else field
        for field in json.loads(table.action["schemaString"])["fields"]
    ]
    schema = json.dumps({"type": "struct", "fields": fields})
    return {**table.with_properties({LAST_ID: str(ids.last)}), "schemaString": schema}
