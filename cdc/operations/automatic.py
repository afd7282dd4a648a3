"""Operations that the job requests itself: the first snapshot, lost tables, and images."""

from collections.abc import Iterable
from typing import Final

import structlog

from cdc.apply.table.applied_table import AppliedTable
from cdc.config import COPY, READ_LOST, Config
from cdc.errors import CdcError, ErrorKind
from cdc.state import operation_files as files
from cdc.state.operation import IN_PLACE, Operation
from cdc.state.submission import asked_now

LINE: Final = f"source.on_lost_changes: {READ_LOST}"
"""Stands in the operation in place of a command line: the key that caused it."""
COPY_LINE: Final = f"source.snapshot: {COPY}"
IMAGE_LINE: Final = "job.log_retention_hours"
_OPTIONS: Final = {"mode": IN_PLACE}
logger = structlog.get_logger(__name__)


def read_lost(config: Config, tables: Iterable[AppliedTable], *, epoch: int) -> None:
    """Request a resnapshot of each table that stopped because ``epoch`` began, if configured.

    Each table gets an operation of its own, so that one that cannot be read holds up no other. A
    table that an unfinished operation has already gets none.
    """
    if config.source.on_lost_changes != READ_LOST:
        return
    lost = (t for t in tables if t.stopped and t.position.epoch < epoch)
    for name in sorted(str(table.schema.table) for table in lost):
        _request(config, asked_now("resnapshot", [name], _OPTIONS, line=LINE))


def read_first_rows(config: Config, tables: Iterable[AppliedTable]) -> None:
    """Request that all tables which await their first rows are read, in one operation.

    Tables of an operation that has not ended are left to it.
    """
    asked = {name for each in files.unfinished(config.state_dir) for name in each.tables}
    awaiting = {str(table.schema.table) for table in tables if table.awaits_first_rows}
    if names := sorted(awaiting - asked):
        _request(config, asked_now("snapshot", names, {}, line=COPY_LINE))


def make_images(config: Config, tables: Iterable[str]) -> None:
    """Request an image of each table, each in an operation of its own."""
    for name in tables:
        _request(config, asked_now("image", [name], {}, line=IMAGE_LINE))


def _request(config: Config, operation: Operation) -> None:
    try:
        files.ask(config.state_dir, operation)
    except CdcError as error:
        if error.kind is not ErrorKind.CONFLICT:
            raise
        logger.info("operation not requested", tables=operation.tables, reason=error.message)
