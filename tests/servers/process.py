"""The servers as local processes: those of the embedded stack, one by one."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cdc.config import Config, Lake, Source
from cdc.stack.embedded import await_ready
from cdc.stack.process.process import Process, descendants, kill
from cdc.stack.servers import plan
from cdc.stack.servers.server import Server as Embedded
from cdc.state.directory import StateDir
from tests.servers.server import Server
from tests.waiting import until


@dataclass(kw_only=True)
class ProcessServer:
    """One embedded server without the supervisor; see ``Server`` for what its methods promise."""

    embedded: Embedded
    address: str
    state: StateDir
    process: Process | None = None

    @property
    def name(self) -> str:
        return self.embedded.name

    def start(self) -> str:
        self.embedded.prepare()
        self.process = Process(self.name, self.embedded.command(), self.state)
        await_ready(self.embedded, self.process)
        return self.address

    def stop(self) -> None:
        if self.process is not None:
            self.process.stop()

    def kill(self) -> None:
        if self.process is not None and self.process.exit_code() is None:
            tree = descendants(self.process.pid)
            os.kill(self.process.pid, signal.SIGKILL)
            kill(tree)
            self.process.stop()

    def abort(self) -> None:
        """As ``pg_ctl stop -m immediate``, of Postgres alone; the next start recovers it."""
        assert self.name == "postgres", f"{self.name} has no such end"
        process = self.process
        if process is not None and process.exit_code() is None:
            os.kill(process.pid, signal.SIGQUIT)
            until(lambda: process.exit_code() is not None)
            process.stop()


def servers(root: Path) -> dict[str, Callable[[], Server]]:
    """How to make each server, by name; all of one root belong together."""
    state = StateDir(root)
    state.create()
    config = Config(source=Source(tables=["public.*"]), lake=Lake(path=str(root)), state_dir=root)
    made = plan.make(config, state)
    addresses = {
        "postgres": made.endpoints.source_url,
        "kafka": made.endpoints.kafka,
        "registry": made.endpoints.registry,
        "connect": made.endpoints.connect,
    }
    return {server.name: _maker(server, addresses[server.name], state) for server in made.servers}


def _maker(embedded: Embedded, address: str, state: StateDir) -> Callable[[], Server]:
    return lambda: ProcessServer(embedded=embedded, address=address, state=state)
