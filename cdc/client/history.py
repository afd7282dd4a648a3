"""Every operation there is or was: the rows in the lake, and the files of those under way."""

from pathlib import Path
from typing import Any

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import operations_path
from cdc.lake.records.operations import Operations, Row, row_of
from cdc.state import operation_files as files
from cdc.state.operation import Operation, OperationState


def history(config: Config) -> list[Row]:
    """By the columns of the Delta table, newest first.

    What the files say counts more than the row, which is written at the beginning and the end.
    """
    found: dict[str, Row] = {row["id"]: row for row in Operations(operations_path(config)).rows()}
    for operation in files.everything(config.state_dir):
        progress = files.progress(config.state_dir, operation.id)
        if not (progress.state.ended and _has_ended(found.get(operation.id))):
            found[operation.id] = row_of(operation, progress)
    return sorted(found.values(), key=_age, reverse=True)


def _has_ended(row: Row | None) -> bool:
    return row is not None and OperationState(row["state"]).ended


def _age(row: Row) -> tuple[Any, str]:
    return row["asked_at"], row["id"]


def the_unfinished(state_dir: Path, operation_id: str | None) -> Operation:
    """The operation of the id, or the only one that has not ended.

    Raises CONFIG for an unknown id, and without one where there is none or more than one.
    """
    if operation_id is not None:
        return files.operation(state_dir, operation_id)
    found = files.asked(state_dir)
    if len(found) == 1:
        return found[0]
    if not found:
        raise CdcError(
            ErrorKind.CONFIG,
            "no operation is under way",
            remedy="wal2lake operations lists those that have ended",
        )
    raise CdcError(
        ErrorKind.CONFIG,
        f"{len(found)} operations are under way",
        detail=", ".join(f"{each.id} ({each.command})" for each in found),
        remedy="name one of them by its id",
    )
