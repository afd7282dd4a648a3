"""Stands between a client and a server; drops, stalls and slows their connections."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final

from cdc.stack.servers.server import LOOPBACK

_PIECE: Final = 16 * 1024
_SECONDS: Final = 30


class Proxy:
    """Passes bytes on in both directions; clients connect to ``address``."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._loop = asyncio.new_event_loop()
        self._flowing = asyncio.Event()
        self._dropping = False
        self._bytes_per_second: int | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")
        self.address = ("", 0)
        self.passed = 0
        """Bytes passed on, in both directions."""
        self.accepted = 0
        """Connections accepted, also those that were reset."""

    def start(self) -> None:
        """Listen on a free port of the loopback address."""
        self._thread.start()
        self._run(self._begin())

    def stop(self) -> None:
        """Reset all connections and stop listening."""
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @contextmanager
    def dropped(self) -> Iterator[None]:
        """Reset every connection, and every new one."""
        self._dropping = True
        self._call(self._reset)
        try:
            yield
        finally:
            self._dropping = False

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """Keep and accept connections, but pass nothing on."""
        self._call(self._flowing.clear)
        try:
            yield
        finally:
            self._call(self._flowing.set)

    @contextmanager
    def slowed(self, bytes_per_second: int) -> Iterator[None]:
        """Limit the rate in each direction of each connection."""
        self._bytes_per_second = bytes_per_second
        try:
            yield
        finally:
            self._bytes_per_second = None

    def _reset(self) -> None:
        for writer in tuple(self._writers):
            writer.transport.abort()

    async def _begin(self) -> None:
        self._flowing.set()
        self._server = await asyncio.start_server(self._accept, LOOPBACK, 0)
        self.address = self._server.sockets[0].getsockname()

    async def _end(self) -> None:
        self._server.close()
        self._flowing.set()
        self._reset()
        me = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not me]
        await asyncio.gather(*others, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        if self._dropping:
            writer.transport.abort()
            return
        try:
            back, forth = await asyncio.open_connection(*self._target)
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(self._pump(reader, forth), self._pump(back, writer))

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while piece := await reader.read(_PIECE):
                await self._flowing.wait()
                if self._bytes_per_second is not None:
                    await asyncio.sleep(len(piece) / self._bytes_per_second)
                writer.write(piece)
                await writer.drain()
                self.passed += len(piece)
        except OSError:
            pass  # one end is gone: the other is closed below
        finally:
            self._writers.discard(writer)
            writer.close()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(_SECONDS)

    def _call(self, act: Callable[..., object], *arguments: object) -> None:
        async def call() -> None:
            act(*arguments)

        self._run(call())


@contextmanager
def proxied(host: str, port: int) -> Iterator[Proxy]:
    """Run a proxy in front of a server."""
    proxy = Proxy(host, port)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
