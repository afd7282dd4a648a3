"""Starts the embedded servers in order, waits until they are ready, stops them in reverse."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import TracebackType
from typing import Self

from tenacity import RetryError, Retrying, retry_if_result, wait_fixed

from cdc.config import Config, masks_of
from cdc.errors import CdcError, ErrorKind
from cdc.stack.artifacts import prerequisites
from cdc.stack.artifacts.install import install
from cdc.stack.process import cleanup
from cdc.stack.process.process import Process
from cdc.stack.servers import server_plan
from cdc.stack.servers.patience import START_SECONDS, Patience
from cdc.stack.servers.server import Server
from cdc.state import endpoints, file_lock
from cdc.state.directory import StateDir
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline, record

_POLL_SECONDS = 0.1

OnProgress = Callable[[str], None]


def _quiet(_: str) -> None:
    """Discard the message."""


@contextmanager
def running(config: Config, on_progress: OnProgress = _quiet) -> Iterator[Endpoints]:
    """Run the servers that ``config`` does not replace for the duration of a ``with`` block."""
    with EmbeddedStack(config, on_progress) as stack:
        stack.make_ready()
        yield stack.start()


class EmbeddedStack(AbstractContextManager["EmbeddedStack"]):
    """Runs the servers of one state directory, which it locks; on exit it stops all of them.

    Entering raises CONFLICT if another stack holds the directory, and PREREQUISITE or DISK_FULL if
    the machine is not fit.
    """

    def __init__(self, config: Config, on_progress: OnProgress = _quiet) -> None:
        self.config = config
        self.state = StateDir(config.state_dir.resolve())
        self.processes: dict[str, Process] = {}
        self.servers: dict[str, Server] = {}
        self.say = on_progress
        self._lock = ExitStack()

    def __enter__(self) -> Self:
        prerequisites.check(self.state.root)
        self.state.create()
        self._lock.enter_context(file_lock.hold(self.state.run / "lock", _already_up(self.state)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        finally:
            self._lock.close()

    def make_ready(self) -> None:
        """Install missing artifacts, and clean up after a crash."""
        install(server_plan.needed_sets(self.config))
        if ended := cleanup.clean(self.state):
            self.say(f"stopped processes left by an earlier run: {', '.join(ended)}")

    def start(self) -> Endpoints:
        """Start every server, after ``make_ready``.

        Returns the endpoints, which it also records in the state directory.
        """
        planned = server_plan.make(self.config, self.state)
        if self.config.connect.url is None:
            found, salt = planned.endpoints, masks_of(self.config.source).salt
            endpoints.write_connector_secrets(self.state, found.source_url, found.registry, salt)
        for wave in planned.waves:
            self._start_wave(wave)
        record(self.state, Pipeline(self.config, planned.endpoints))
        return planned.endpoints

    def _start_wave(self, wave: tuple[Server, ...]) -> None:
        for server in wave:
            self.say(f"starting {server.name}")
            self.servers[server.name] = server
            self.spawn(server)
        for server in wave:
            self.await_ready(server)
            self.say(f"{server.name} is ready")

    def spawn(self, server: Server) -> Process:
        """Prepare and start one server, without waiting until it is ready."""
        server.prepare()
        process = Process(server.name, server.command(), self.state)
        self.processes[server.name] = process
        return process

    def await_ready(self, server: Server) -> None:
        """Wait for the server; raises SERVER_FAILED, or DISK_FULL if that is the likely cause."""
        try:
            await_ready(server, self.processes[server.name])
        except CdcError as error:
            prerequisites.check_disk(self.state.root)
            raise error from None

    def stop(self) -> None:
        """Stop every server, the last started first.

        A final sweep ends processes that an interrupted start could not record.
        """
        try:
            for process in reversed(self.processes.values()):
                self.say(f"stopping {process.name}")
                process.stop()
        finally:
            self.processes.clear()
            cleanup.clean(self.state)


def await_ready(server: Server, process: Process) -> None:
    """Wait until the server's own API answers; raises SERVER_FAILED if it dies or stalls."""
    patience = Patience(server)
    attempts = Retrying(
        retry=retry_if_result(lambda ready: not ready),
        wait=wait_fixed(_POLL_SECONDS),
        stop=lambda _state: patience.is_over(),
    )
    try:
        attempts(_ready_or_dead, server, process)
    except RetryError:
        raise process.failure(f"was not ready and made no progress for {START_SECONDS} s") from None


def _ready_or_dead(server: Server, process: Process) -> bool:
    if (code := process.exit_code()) is not None:
        raise process.failure(f"failed to start (exit code {code})")
    return server.is_ready()


def _already_up(state: StateDir) -> CdcError:
    return CdcError(
        ErrorKind.CONFLICT,
        f"the stack in {state.root} is already up",
        remedy="run wal2lake down, or choose another state_dir",
    )
