"""What a network does to all connections of a pair for a while: drops, stalls, slows them."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from tests.faults.scenes.scene import ALL, Scene
from tests.servers.proxy import Proxy

SHORT_SECONDS: Final = 20.0
"""Several batches."""
LONG_SECONDS: Final = 75.0
"""Longer than ``wal_sender_timeout``, at which Postgres gives a silent reader up, and than the
sessions and requests of Kafka's clients."""
SLOW: Final = 20_000  # bytes per second


@dataclass(frozen=True, slots=True)
class Trouble:
    begin: Callable[[Proxy], AbstractContextManager[None]]
    seconds: float


TROUBLES: Final = {
    "dropped": Trouble(Proxy.dropped, SHORT_SECONDS),
    "stalled": Trouble(Proxy.stalled, LONG_SECONDS),
    "slow": Trouble(lambda proxy: proxy.slowed(SLOW), SHORT_SECONDS),
}


@contextmanager
def troubled(scene: Scene, trouble: Trouble, server: str, client: str = ALL) -> Iterator[None]:
    """Every connection to the server, or those of one client, for as long as the block lasts."""
    with ExitStack() as stack:
        for proxy in scene.before(server, client):
            stack.enter_context(trouble.begin(proxy))
        yield


def elapse(seconds: float) -> None:
    """Time in which something lasts."""
    threading.Event().wait(seconds)
