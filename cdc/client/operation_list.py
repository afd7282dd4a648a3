"""Find operations: past ones in the lake's table, those under way in the state directory."""

from pathlib import Path
from typing import Any

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import operations_path
from cdc.lake.records.operations import Operations, Row, row_of
from cdc.state import operation_files as files
from cdc.state.operation import Operation, OperationState


def all_operations(config: Config) -> list[Row]:
    """Return every operation as a row of the table ``wal2lake.operations``, newest first.

    The files in the state directory take precedence over the row in the lake, which is written
    only at the beginning and at the end of an operation.
    """
    rows: dict[str, Row] = {row["id"]: row for row in Operations(operations_path(config)).rows()}
    for operation in files.all_operations(config.state_dir):
        progress = files.progress(config.state_dir, operation.id)
        if not (progress.state.ended and _has_ended(rows.get(operation.id))):
            rows[operation.id] = row_of(operation, progress)
    return sorted(rows.values(), key=_age, reverse=True)


def _has_ended(row: Row | None) -> bool:
    return row is not None and OperationState(row["state"]).ended


def _age(row: Row) -> tuple[Any, str]:
    return row["asked_at"], row["id"]


def unfinished_operation(state_dir: Path, operation_id: str | None) -> Operation:
    """Return the operation with the id; without an id, the only one that has not ended.

    Raises CONFIG for an unknown id, and without an id if none or more than one is under way.
    """
    if operation_id is not None:
        return files.operation(state_dir, operation_id)
    under_way = files.unfinished(state_dir)
    if len(under_way) == 1:
        return under_way[0]
    if not under_way:
        raise CdcError(
            ErrorKind.CONFIG,
            "no operation is under way",
            remedy="see those that have ended: wal2lake operations",
        )
    raise CdcError(
        ErrorKind.CONFIG,
        f"{len(under_way)} operations are under way",
        detail=", ".join(f"{operation.id} ({operation.command})" for operation in under_way),
        remedy="name one of them by its ID",
    )
