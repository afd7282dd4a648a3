"""Runs the job's desk: gives each command its handler, and ends a running operation.

An operation of one run may commit nothing once another run has begun, in this process or in the
next: it would set a table back to the state that the operation found. So a run waits for the end
of the desk's thread without a limit, and cancels Spark jobs to hasten it.
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
from cdc.lake.upkeep.held import held
from cdc.operations import purging
from cdc.operations.desk.context import JobContext
from cdc.operations.desk.desk import Desk, Handler
from cdc.operations.desk.reporter import Reporter
from cdc.operations.discard import discard
from cdc.operations.first_snapshot.handler import FirstSnapshot
from cdc.operations.forget import handler as forget
from cdc.operations.replay import image, in_place
from cdc.operations.resnapshot.handler import Resnapshot
from cdc.state.operation import Operation

logger = structlog.get_logger(__name__)
GRACE_SECONDS: Final = 5.0
"""How long an operation has to reach a safe point before its Spark jobs are cancelled."""
SAY_SECONDS: Final = 30.0
"""How often a run that waits for an operation to end says so in the log."""
_TAG: Final = "wal2lake-desk"


class RunningDesk:
    """Holds the desk of one run, and can ask it to end."""

    def __init__(
        self,
        desk: Desk,
        cancel: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``cancel`` cancels the desk's Spark jobs that run at that moment."""
        self._desk = desk
        self._cancel = cancel
        self._clock = clock
        self._asked_at: float | None = None
        self._say_at = SAY_SECONDS

    def ended(self, seconds: float = 0.0) -> bool:
        """Ask the desk to end, wait up to ``seconds``, and return whether its thread has ended.

        It is called repeatedly. A Spark action has no safe point: after ``GRACE_SECONDS`` every
        call cancels all of them, since an operation may start another before it notices.
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
        except Exception:  # Spark itself may be gone; the run waits for the thread all the same
            logger.exception("the operation's Spark jobs could not be cancelled")


@contextmanager
def running_desk(context: JobContext) -> Iterator[RunningDesk]:
    """Run requested operations inside the block; one that it interrupts starts again next time.

    The block ends when no operation can commit anything any more, however long that takes.
    """
    config = context.config
    desk = Desk(config.state_dir, Operations(operations_path(config)), handlers(context))
    desk.start()
    running = RunningDesk(desk, partial(context.spark.sparkContext.cancelJobsWithTag, _TAG))
    try:
        yield running
    finally:
        while not running.ended(1.0):
            pass


def handlers(context: JobContext) -> Mapping[str, Handler]:
    """Return the handler of each command."""
    return {
        "snapshot": _shared(context, FirstSnapshot(context)),
        "resnapshot": _shared(context, Resnapshot(context)),
        "replay": _shared(context, in_place.handler(context)),
        "rebuild": _shared(context, in_place.handler(context)),
        "image": _shared(context, image.handler(context)),
        "forget": _in_pool(context, forget.handler(context)),
        "discard": discard(context.quarantine, context.recount),
        "purge": purging.handler(context.pipeline, partial(remove, context.spark)),
    }


def _shared(context: JobContext, handler: Handler) -> Handler:
    """Return the handler, run as ``_in_pool`` does; the versions that it reads are held."""

    def run(operation: Operation, reporter: Reporter) -> None:
        with held(context.config.lake.path, by_job=True):
            handler(operation, reporter)

    return _in_pool(context, run)


def _in_pool(context: JobContext, handler: Handler) -> Handler:
    """Return the handler with a scheduler pool of its own, which leaves the rounds their cores.

    Its jobs get a tag, by which they can be cancelled.
    """

    def run(operation: Operation, reporter: Reporter) -> None:
        spark = context.spark.sparkContext
        spark.setLocalProperty("spark.scheduler.pool", "desk")
        spark.addJobTag(_TAG)
        handler(operation, reporter)

    return run
