"""Makes forgetting wait for the next landing, and until nobody reads older versions."""

import time
from collections.abc import Callable
from typing import Final

from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.lake.upkeep.held import oldest_hold
from cdc.operations.desk.context import CUT_SECONDS, JobContext
from cdc.operations.desk.reporter import Reporter
from cdc.source.server import barrier
from cdc.source.server.connection import connect

HOLD_SECONDS: Final = 60.0
LOOK_SECONDS: Final = 0.5


def newest_cut(job: JobContext) -> LedgerRow:
    """Return the newest cut; raise CONFLICT before the first."""
    row = Ledger(ledger_path(job.config)).last()
    if row is None:
        raise CdcError(
            ErrorKind.CONFLICT,
            "nothing is published yet, so nothing can be forgotten",
            remedy="wait for the first cut: wal2lake status",
        )
    return row


def await_landing(job: JobContext, reporter: Reporter, is_done: Callable[[], bool]) -> None:
    """Wait until ``is_done``, which takes landings; raises as ``await_said``."""
    await_said(job, reporter, is_done, "nothing landed")


def await_said(
    job: JobContext, reporter: Reporter, is_done: Callable[[], bool], otherwise: str
) -> None:
    """Have the source say something, so that there are landings and cuts, until ``is_done``.

    Raises TIMEOUT after ``CUT_SECONDS``, with what there was ``otherwise``.
    """
    until = time.monotonic() + CUT_SECONDS
    with connect(job.pipeline.endpoints.source_url) as connection:
        while not is_done():
            if time.monotonic() > until:
                raise CdcError(
                    ErrorKind.TIMEOUT,
                    f"{otherwise} within {CUT_SECONDS:g} s",
                    remedy="wal2lake status",
                )
            barrier.touch(connection, reporter.progress.id)
            reporter.wait(LOOK_SECONDS)


def await_no_hold(job: JobContext, reporter: Reporter, since: float) -> None:
    """Wait until nobody reads a version older than ``since``; raise CONFLICT after a minute."""
    until = time.monotonic() + HOLD_SECONDS
    while (hold := oldest_hold(job.config.lake.path)) is not None and hold < since:
        if time.monotonic() > until:
            raise CdcError(
                ErrorKind.CONFLICT,
                "somebody still reads versions that are to be deleted",
                detail=f"{job.config.lake.path}/_wal2lake/held has a file for each reader; "
                "one that was killed counts for ten minutes",
                remedy="wait until verify, sql and other programs have ended, and run it again",
            )
        reporter.wait(LOOK_SECONDS)
