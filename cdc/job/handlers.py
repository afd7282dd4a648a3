"""The desk of the job: which command is done by what, and how its work is ended.

Nothing of a run may be committed once another has begun, in this process or in the next: a table
would be set back to where the operation found it. So the end of the desk's thread is waited for
without a limit, and hastened.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Final

import structlog

from cdc.lake.layout import operations_path
from cdc.lake.records.operations import Operations
from cdc.lake.table.removal import remove
from cdc.operations import purging
from cdc.operations.desk.context import JobContext
from cdc.operations.desk.desk import Desk, Handler
from cdc.operations.desk.reporter import Reporter
from cdc.operations.discard import discard
from cdc.operations.replay import image, in_place
from cdc.operations.resnapshot.handler import Resnapshot
from cdc.state.operation import Operation

logger = structlog.get_logger(__name__)
GRACE_SECONDS: Final = 5.0
"""So long an operation may take to its next safe point before its Spark jobs are cancelled."""
SAY_SECONDS: Final = 30.0
_TAG: Final = "wal2lake-desk"


class DeskWork:
    """What the desk of one run is at."""

    def __init__(
        self,
        desk: Desk,
        cancel: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``cancel`` ends what Spark does for the desk at this moment."""
        self._desk = desk
        self._cancel = cancel
        self._clock = clock
        self._asked_at: float | None = None
        self._say_at = SAY_SECONDS

    def ended(self, seconds: float = 0.0) -> bool:
        """Ask the desk to end; whether its thread is gone, waiting at most so long for it.

        Called again and again. An action of Spark has no safe point: after a while all of them
        are cancelled, each time anew, since an operation may begin another before it notices.
        """
        if self._asked_at is None:
            self._asked_at = self._clock()
        if self._desk.stop(seconds):
            return True
        waited = self._clock() - self._asked_at
        if waited >= GRACE_SECONDS:
            self._end_jobs()
        if waited >= self._say_at:
            self._say_at = waited + SAY_SECONDS
            logger.warning("an operation does not end, and the run waits", seconds=round(waited))
        return False

    def _end_jobs(self) -> None:
        try:
            self._cancel()
        except Exception:  # Spark itself may be gone; the thread is waited for all the same
            logger.exception("the operation's Spark jobs could not be cancelled")


@contextmanager
def at_work(context: JobContext) -> Iterator[DeskWork]:
    """Operations are run inside the block; what runs at its end is run again at the next start.

    Returns when nothing of them can be committed any more, however long that takes.
    """
    config = context.config
    desk = Desk(config.state_dir, Operations(operations_path(config)), handlers(context))
    desk.start()
    work = DeskWork(desk, partial(context.spark.sparkContext.cancelJobsWithTag, _TAG))
    try:
        yield work
    finally:
        while not work.ended(1.0):
            pass


def handlers(context: JobContext) -> Mapping[str, Handler]:
    """By command."""
    return {
        "resnapshot": _shared(context, Resnapshot(context)),
        "replay": _shared(context, in_place.handler(context)),
        "rebuild": _shared(context, in_place.handler(context)),
        "image": _shared(context, image.handler(context)),
        "discard": discard(context.quarantine, context.recount),
        "purge": purging.handler(
            lambda: context.config, context.endpoints, partial(remove, context.spark)
        ),
    }


def _shared(context: JobContext, handler: Handler) -> Handler:
    """With a pool of its own, so that the rounds get their part of the cores meanwhile.

    And with a tag, by which its jobs are cancelled.
    """

    def run(operation: Operation, reporter: Reporter) -> None:
        spark = context.spark.sparkContext
        spark.setLocalProperty("spark.scheduler.pool", "desk")
        spark.addJobTag(_TAG)
        handler(operation, reporter)

    return run
