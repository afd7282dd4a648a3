"""What the job asks itself for: lost tables are read, and images made, where that is configured."""

from collections.abc import Iterable
from typing import Final

import structlog

from cdc.apply.table.applied_table import AppliedTable
from cdc.config import READ_LOST, Config
from cdc.errors import CdcError, ErrorKind
from cdc.state import operation_files as files
from cdc.state.operation import IN_PLACE, Operation
from cdc.state.submission import asked_now

LINE: Final = f"source.on_lost_changes: {READ_LOST}"
IMAGE_LINE: Final = "job.log_retention_hours"
_OPTIONS: Final = {"mode": IN_PLACE}
logger = structlog.get_logger(__name__)


def read_lost(config: Config, tables: Iterable[AppliedTable], *, epoch: int) -> None:
    """Ask for a resnapshot of each table that stopped because an epoch began.

    Of each by itself, so that one which cannot be read keeps no other from it; not where an
    unfinished operation has the table.
    """
    if config.source.on_lost_changes != READ_LOST:
        return
    lost = (t for t in tables if t.stopped and t.position.epoch < epoch)
    for name in sorted(str(table.schema.table) for table in lost):
        _ask(config, asked_now("resnapshot", [name], _OPTIONS, line=LINE))


def make_images(config: Config, tables: Iterable[str]) -> None:
    """Ask for an image of each table, by itself as above."""
    for name in tables:
        _ask(config, asked_now("image", [name], {}, line=IMAGE_LINE))


def _ask(config: Config, operation: Operation) -> None:
    try:
        files.ask(config.state_dir, operation)
    except CdcError as error:
        if error.kind is not ErrorKind.CONFLICT:
            raise
        logger.info("not asked for", tables=operation.tables, reason=error.message)
