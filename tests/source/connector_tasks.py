"""Asks for the states of a connector's tasks."""

from cdc.source.connector import worker_rest
from cdc.state.endpoints import Endpoints


def tasks(chain: Endpoints, name: str) -> tuple[str, ...]:
    """Return the state of each task of a connector, as the worker gives it."""
    status = worker_rest.status(chain.connect, name)
    return tuple(task.state for task in status.tasks) if status else ()
