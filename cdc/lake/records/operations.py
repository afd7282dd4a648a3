"""Keeps the table of operations: what the job was asked to do, by whom, and with what outcome."""

from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from deltalake import QueryBuilder, write_deltalake

from cdc.lake.files.delta import storage_options
from cdc.lake.table.known_commit import known_commit
from cdc.lake.table.positions import open_table
from cdc.lake.upkeep.control_tables import optimize
from cdc.state.operation import Operation, OperationState, Progress

RESULT: Final = pa.struct(
    [
        ("table", pa.string()),
        ("rows_read", pa.int64()),
        ("added", pa.int64()),
        ("changed", pa.int64()),
        ("swept", pa.int64()),
        ("refused", pa.int64()),
        ("cut_before", pa.int64()),
        ("cut_after", pa.int64()),
        ("seconds", pa.float64()),
        ("note", pa.string()),
    ]
)
SCHEMA: Final = pa.schema(
    [
        ("id", pa.string()),
        ("command", pa.string()),
        ("line", pa.string()),
        ("asked_by", pa.string()),
        ("asked_at", pa.timestamp("us", "UTC")),
        ("tables", pa.list_(pa.string())),
        ("predicate", pa.string()),
        ("mode", pa.string()),
        ("state", pa.string()),
        ("rows_read", pa.int64()),
        ("rows_added", pa.int64()),
        ("rows_changed", pa.int64()),
        ("rows_swept", pa.int64()),
        ("rows_refused", pa.int64()),
        ("cut_before", pa.int64()),
        ("cut_after", pa.int64()),
        ("started_at", pa.timestamp("us", "UTC")),
        ("ended_at", pa.timestamp("us", "UTC")),
        ("seconds", pa.float64()),
        ("outcome", pa.string()),
        ("results", pa.list_(RESULT)),
    ]
)

Row = dict[str, Any]


class Operations:
    """Keeps a Delta table with one row per operation; the job alone writes it, anyone reads it."""

    def __init__(self, path: str) -> None:
        self.path = path

    def begin(self, operation: Operation, progress: Progress | None = None) -> None:
        """Record that the operation runs; called again when it restarts after a crash."""
        running = progress or Progress(id=operation.id, state=OperationState.RUNNING)
        self._merge(row_of(operation, running))

    def end(self, operation: Operation, progress: Progress) -> None:
        """Record the outcome; it replaces the row with the same id."""
        self._merge(row_of(operation, progress))

    def rows(self) -> list[Row]:
        """Return every operation ever begun, oldest first, as dicts by column name."""
        table = open_table(self.path)
        if table is None:
            return []
        query = "SELECT * FROM operations ORDER BY asked_at, id"
        result = QueryBuilder().register("operations", table).execute(query).read_all()
        return list(pa.table(result).to_pylist())

    def row(self, operation_id: str) -> Row | None:
        """Return the operation with this id; None if there is none."""
        return next((row for row in self.rows() if row["id"] == operation_id), None)

    def _merge(self, row: Row) -> None:
        source = pa.Table.from_pylist([row], schema=SCHEMA)
        table = open_table(self.path)
        if table is None:
            with known_commit(self.path) as known:
                write_deltalake(
                    self.path,
                    source,
                    commit_properties=known,
                    storage_options=storage_options(self.path),
                )
            return
        with known_commit(self.path, table=table) as known:
            merger = table.merge(
                source, "t.id = s.id", source_alias="s", target_alias="t", commit_properties=known
            )
            merger.when_matched_update_all().when_not_matched_insert_all().execute()
        optimize(self.path, table)


def row_of(operation: Operation, progress: Progress) -> Row:
    """Return the row of an operation at this progress, with sums over its tables."""
    results = progress.results
    before = [result.cut_before for result in results if result.cut_before is not None]
    after = [result.cut_after for result in results if result.cut_after is not None]
    return {
        "id": operation.id,
        "command": operation.command,
        "line": operation.line,
        "asked_by": operation.asked_by,
        "asked_at": _moment(operation.asked_at),
        "tables": list(operation.tables),
        "predicate": operation.options.get("where"),
        "mode": operation.options.get("mode"),
        "state": progress.state.value,
        "rows_read": sum(result.rows_read for result in results),
        "rows_added": sum(result.added for result in results),
        "rows_changed": sum(result.changed for result in results),
        "rows_swept": sum(result.swept for result in results),
        "rows_refused": sum(result.refused for result in results),
        "cut_before": min(before, default=None),
        "cut_after": max(after, default=None),
        "started_at": _moment(progress.started_at),
        "ended_at": _moment(progress.ended_at),
        "seconds": progress.seconds if progress.state.ended else None,
        "outcome": progress.outcome or None,
        "results": [asdict(result) for result in results],
    }


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
