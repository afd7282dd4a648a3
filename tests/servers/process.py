"""Runs the servers of the embedded stack as local processes, started one by one."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cdc.config import Config, Lake, Source
from cdc.stack.embedded import await_ready
from cdc.stack.process.process import Process, descendants, kill
from cdc.stack.servers import server_plan
from cdc.stack.servers.server import Server as Embedded
from cdc.state.directory import StateDir
from tests.servers.server import Server
from tests.waiting import until


@dataclass(kw_only=True)
class ProcessServer:
    """An embedded server without a supervisor; ``Server`` says what its methods promise."""

    embedded: Embedded
    address: str
    state: StateDir
    process: Process | None = None

    @property
    def name(self) -> str:
        """Return the name of the server."""
        return self.embedded.name

    def start(self) -> str:
        """Start the process and wait until the server answers."""
        self.embedded.prepare()
        self.process = Process(self.name, self.embedded.command(), self.state)
        await_ready(self.embedded, self.process)
        return self.address

    def stop(self) -> None:
        """Stop the process in an orderly way."""
        if self.process is not None:
            self.process.stop()

    def kill(self) -> None:
        """Kill the process and its children with SIGKILL."""
        if self.process is not None and self.process.exit_code() is None:
            tree = descendants(self.process.pid)
            os.kill(self.process.pid, signal.SIGKILL)
            kill(tree)
            self.process.stop()

    def abort(self) -> None:
        """End Postgres like ``pg_ctl stop -m immediate``; the next start recovers it."""
        assert self.name == "postgres", f"{self.name} has no such end"
        process = self.process
        if process is not None and process.exit_code() is None:
            os.kill(process.pid, signal.SIGQUIT)
            until(lambda: process.exit_code() is not None)
            process.stop()


def servers(root: Path) -> dict[str, Callable[[], Server]]:
    """Return a maker for each server, by name; those of one root belong together."""
    state = StateDir(root)
    state.create()
    config = Config(source=Source(tables=["public.*"]), lake=Lake(path=str(root)), state_dir=root)
    planned = server_plan.make(config, state)
    endpoints = planned.endpoints
    addresses = {
        "postgres": endpoints.source_url,
        "kafka": endpoints.kafka.bootstrap,
        "registry": endpoints.registry,
        "connect": endpoints.connect,
    }
    return {one.name: _maker(one, addresses[one.name], state) for one in planned.servers}


def _maker(embedded: Embedded, address: str, state: StateDir) -> Callable[[], Server]:
    return lambda: ProcessServer(embedded=embedded, address=address, state=state)
