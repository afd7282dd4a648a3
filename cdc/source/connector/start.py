"""Letting the connector run, and waiting until it does with its slot."""

from collections.abc import Mapping
from typing import Final

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.source.connector import worker_rest
from cdc.source.server import slot
from cdc.source.server.connection import Connection
from cdc.state.endpoints import Endpoints
from cdc.waiting import until

START_SECONDS: Final = 120.0
_FREE_SECONDS: Final = 90.0


def await_running(
    connection: Connection, config: Config, endpoints: Endpoints, *, streams: bool
) -> None:
    """Until the connector runs with its slot: it says RUNNING while that waits to be made.

    With ``streams`` the slot is read too, which a first snapshot comes before. Raises
    SERVER_FAILED with what ended it, TIMEOUT when it does not start.
    """

    def running() -> bool:
        status = worker_rest.status(endpoints.connect, config.name)
        if status is not None and status.failed:
            raise CdcError(
                ErrorKind.SERVER_FAILED,
                f"connector {config.name} failed",
                detail=status.failure,
                remedy=f"wal2lake check; see the worker's log; where it stays so, {slot.NEW_EPOCH}",
            )
        if status is None or not status.running:
            return False
        state = slot.slot_state(connection, config.name)
        return state is not None and (state.active_pid is not None or not streams)

    until(running, START_SECONDS, f"connector {config.name} did not start")


def reconfigure(
    connection: Connection, config: Config, endpoints: Endpoints, wanted: Mapping[str, str]
) -> None:
    """Between a stop and a start, so that no task goes on with the old settings meanwhile.

    Whoever sees the new settings at the worker knows that every event from then on is by them.
    """
    worker_rest.stop(endpoints.connect, config.name)
    try:
        await_free(connection, config.name)
        worker_rest.configure(endpoints.connect, config.name, wanted)
    finally:
        worker_rest.resume(endpoints.connect, config.name)


def await_free(connection: Connection, name: str) -> None:
    """Until nobody reads the slot: then no task of an older configuration sends anything.

    Raises TIMEOUT.
    """
    until(
        lambda: not slot.is_read(connection, name), _FREE_SECONDS, f"slot {name} was not given up"
    )
