"""Gives up what older cuts and replays of a table would need, once an image takes its place."""

from concurrent.futures import Future

from pyarrow import fs

from cdc.lake.files.store_of import store_of
from cdc.lake.layout import asides_path, derived_aside_path, ledger_path
from cdc.lake.records.ledger import Ledger
from cdc.lake.records.readings import Reading
from cdc.lake.table.removal import remove
from cdc.operations.desk.context import JobContext
from cdc.operations.desk.reporter import Reporter
from cdc.operations.forget.waits import LOOK_SECONDS


def give_up_cuts(job: JobContext, before: int, reporter: Reporter) -> None:
    """Have the thread of the rounds drop the cuts before this one."""
    dropped: Future[None] = Future()

    def drop() -> None:
        Ledger(ledger_path(job.config)).forget_before(before)
        dropped.set_result(None)

    job.freezer.between(drop)
    while not dropped.done():
        reporter.wait(LOOK_SECONDS)


def remove_leftovers(job: JobContext, made: Reading) -> None:
    """Remove what lies beside the image, and what operations have left that were given up.

    No other operation runs now. What derived tables need for a moment stays: a step may run.
    """
    readings, kept = made.path.rpartition("/")[0], {made.path, derived_aside_path(job.config)}
    for path in (*_in(readings), *_in(asides_path(job.config))):
        if path not in kept:
            remove(job.spark, path)


def _in(folder: str) -> list[str]:
    listed = store_of(folder).tree.get_file_info(fs.FileSelector("", allow_not_found=True))
    return [f"{folder}/{file.path}" for file in listed]
