"""The desk of the job: which command is done by what."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Final

from cdc.lake.layout import operations_path
from cdc.lake.operations import Operations
from cdc.lake.removal import remove
from cdc.operate import imaging, purging, replaying
from cdc.operate.desk import Desk, Handler
from cdc.operate.operation import Operation
from cdc.operate.quarantine_handlers import discard
from cdc.operate.reporter import Reporter
from cdc.operate.resnapshot import Resnapshot
from cdc.operate.workshop import Workshop

_STOP_SECONDS: Final = 30.0


@contextmanager
def at_work(shop: Workshop) -> Iterator[Desk]:
    """Operations are run inside the block; what runs at its end is run again at the next start."""
    config = shop.config
    desk = Desk(config.state_dir, Operations(operations_path(config)), handlers(shop))
    desk.start()
    try:
        yield desk
    finally:
        desk.stop(_STOP_SECONDS)


def handlers(shop: Workshop) -> Mapping[str, Handler]:
    """By command."""
    return {
        "resnapshot": _shared(shop, Resnapshot(shop)),
        "replay": _shared(shop, replaying.handler(shop)),
        "rebuild": _shared(shop, replaying.handler(shop)),
        "image": _shared(shop, imaging.handler(shop)),
        "discard": discard(shop.quarantine, shop.recount),
        "purge": purging.handler(lambda: shop.config, shop.endpoints, partial(remove, shop.spark)),
    }


def _shared(shop: Workshop, handler: Handler) -> Handler:
    """With a pool of its own, so that the rounds get their part of the cores meanwhile."""

    def run(operation: Operation, reporter: Reporter) -> None:
        shop.spark.sparkContext.setLocalProperty("spark.scheduler.pool", "desk")
        handler(operation, reporter)

    return run
