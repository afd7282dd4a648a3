"""Writes checkpoints of a table's log, which delta-rs makes."""

import structlog
from deltalake.exceptions import DeltaError

from cdc.lake.files.delta import delta_table
from cdc.observe.defects import error_text

logger = structlog.get_logger(__name__)


def write_checkpoint(path: str, version: int) -> bool:
    """Write a checkpoint of a version of the table at ``path``; any thread may.

    Returns whether it was written: a failure is logged, since the table is whole without.
    """
    try:
        delta_table(path, version).create_checkpoint()
    except (DeltaError, OSError) as error:
        logger.warning("checkpoint", path=path, failed=error_text(error))
        return False
    return True
