"""Start the connector, and wait until it runs with its slot."""

from collections.abc import Mapping
from typing import Final

from cdc.errors import CdcError, ErrorKind
from cdc.source.connector import worker_rest
from cdc.source.server import slot
from cdc.source.server.connection import Connection
from cdc.state.pipeline import Pipeline
from cdc.waiting import until

START_SECONDS: Final = 120.0
_FREE_SECONDS: Final = 90.0


def await_running(connection: Connection, pipeline: Pipeline, *, streams: bool) -> None:
    """Wait until the connector runs and its slot exists.

    The worker reports RUNNING even while the connector waits to create its slot. With ``streams``,
    wait also until the slot is read, which happens only after a first snapshot. Raises
    SERVER_FAILED with the cause if the connector fails, TIMEOUT if it does not start.
    """

    def running() -> bool:
        status = worker_rest.status(pipeline.endpoints.connect, pipeline.name)
        if status is not None and status.failed:
            raise CdcError(
                ErrorKind.SERVER_FAILED,
                f"connector {pipeline.name} failed",
                detail=status.failure,
                remedy="run wal2lake check and see the worker's log; if the failure persists, run "
                f"{slot.NEW_EPOCH}",
            )
        if status is None or not status.running:
            return False
        state = slot.slot_state(connection, pipeline.name)
        return state is not None and (state.active_pid is not None or not streams)

    until(running, START_SECONDS, f"connector {pipeline.name} did not start")


def reconfigure(connection: Connection, pipeline: Pipeline, wanted: Mapping[str, str]) -> None:
    """Stop the connector, give it new settings, and resume it.

    No task runs with the old settings after the change, so whoever sees the new settings at the
    worker knows that all later events follow them. Raises TIMEOUT if the slot is not released, and
    what the functions of ``worker_rest`` raise.
    """
    endpoints = pipeline.endpoints
    worker_rest.stop(endpoints.connect, pipeline.name)
    try:
        await_free(connection, pipeline.name)
        worker_rest.configure(endpoints.connect, pipeline.name, wanted)
    finally:
        worker_rest.resume(endpoints.connect, pipeline.name)


def await_free(connection: Connection, name: str) -> None:
    """Wait until nobody reads the slot, so that no task with older settings sends anything.

    Raises TIMEOUT if it stays in use.
    """
    until(
        lambda: not slot.is_read(connection, name), _FREE_SECONDS, f"slot {name} was not released"
    )
