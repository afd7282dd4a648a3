"""The operations: what was asked of the job, by whom, and what came of it, kept in the lake."""

from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from deltalake import QueryBuilder, write_deltalake

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
    """The Delta table with one row per operation; written by the job alone, read by anyone."""

    def __init__(self, path: str) -> None:
        self.path = path

    def begin(self, operation: Operation, progress: Progress | None = None) -> None:
        """Record that it runs; called again when it is begun again after a crash."""
        said = progress or Progress(id=operation.id, state=OperationState.RUNNING)
        self._merge(row_of(operation, said))

    def end(self, operation: Operation, progress: Progress) -> None:
        """Record what came of it; the row of the same id is replaced."""
        self._merge(row_of(operation, progress))

    def rows(self) -> list[Row]:
        """Every operation ever begun, oldest first, by the names of the columns."""
        table = open_table(self.path)
        if table is None:
            return []
        query = "SELECT * FROM operations ORDER BY asked_at, id"
        found = QueryBuilder().register("operations", table).execute(query).read_all()
        return list(pa.table(found).to_pylist())

    def row(self, operation_id: str) -> Row | None:
        return next((row for row in self.rows() if row["id"] == operation_id), None)

    def _merge(self, row: Row) -> None:
        source = pa.Table.from_pylist([row], schema=SCHEMA)
        table = open_table(self.path)
        if table is None:
            write_deltalake(self.path, source)
            return
        merger = table.merge(source, "t.id = s.id", source_alias="s", target_alias="t")
        merger.when_matched_update_all().when_not_matched_insert_all().execute()
        optimize(table)


def row_of(operation: Operation, progress: Progress) -> Row:
    """The row of an operation that is as far as the progress says."""
    results = progress.results
    before = [each.cut_before for each in results if each.cut_before is not None]
    after = [each.cut_after for each in results if each.cut_after is not None]
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
        "rows_read": sum(each.rows_read for each in results),
        "rows_added": sum(each.added for each in results),
        "rows_changed": sum(each.changed for each in results),
        "rows_swept": sum(each.swept for each in results),
        "rows_refused": sum(each.refused for each in results),
        "cut_before": min(before, default=None),
        "cut_after": max(after, default=None),
        "started_at": _moment(progress.started_at),
        "ended_at": _moment(progress.ended_at),
        "seconds": progress.seconds if progress.state.ended else None,
        "outcome": progress.outcome or None,
        "results": [asdict(each) for each in results],
    }


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
