"""Network trouble for all connections of a pair: drop, stall or slow them for a while."""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from tests.faults.scenes.scene import ALL, Scene
from tests.servers.proxy import Proxy

SHORT_SECONDS: Final = 20.0
"""Long enough for several batches."""
LONG_SECONDS: Final = 75.0
"""Longer than ``wal_sender_timeout``, after which Postgres drops a silent reader, and than the
sessions and requests of Kafka's clients."""
SLOW: Final = 20_000  # bytes per second


@dataclass(frozen=True, slots=True)
class Trouble:
    """A kind of trouble and how long it lasts."""

    begin: Callable[[Proxy], AbstractContextManager[None]]
    seconds: float


TROUBLES: Final = {
    "dropped": Trouble(Proxy.dropped, SHORT_SECONDS),
    "stalled": Trouble(Proxy.stalled, LONG_SECONDS),
    "slow": Trouble(lambda proxy: proxy.slowed(SLOW), SHORT_SECONDS),
}


@contextmanager
def troubled(scene: Scene, trouble: Trouble, server: str, client: str = ALL) -> Iterator[None]:
    """Trouble every connection to the server, or one client's, for the block."""
    with ExitStack() as stack:
        for proxy in scene.before(server, client):
            stack.enter_context(trouble.begin(proxy))
        yield


def elapse(seconds: float) -> None:
    """Let a trouble last for its time: there is no condition to await."""
    threading.Event().wait(seconds)
