"""Tables that the connector cannot read, kept out of its list so that it can start.

It reads the columns of all tables in its list as it starts, and fails at one that has two columns
of one name. Such a table has left the publication (docs/decisions/0027), so nothing of it is missed
that was not given up there; its settings name it apart, so that it is not forgotten.
"""

from collections.abc import Iterable
from typing import Final

from cdc.config import Config
from cdc.source import connector
from cdc.source.captured import wanted_of
from cdc.source.catalog import inspect
from cdc.source.connector_start import await_running, reconfigure
from cdc.source.postgres import connect
from cdc.source.settings import captured, passed_over, with_passed_over
from cdc.stack.endpoints import Endpoints
from cdc.tables import TableId

_CONNECT_SECONDS: Final = 3
_ANSWER_SECONDS: Final = 10.0


def pass_over(config: Config, endpoints: Endpoints) -> tuple[TableId, ...]:
    """Name to the connector the tables that it is to pass over, and start it so.

    Returns those that it was not told of before; nothing is done where there is none. Raises what a
    source or a worker that does not answer raises.
    """
    running = connector.configuration(endpoints.connect, config.name)
    if running is None:
        return ()
    before = passed_over(running)
    new = _unreadable(config, endpoints, captured(running)) - before
    if new:
        told = with_passed_over(running, before | new)
        connector.configure(endpoints.connect, config.name, told)
    return tuple(sorted(new))


def take_back(config: Config, endpoints: Endpoints, table: TableId) -> bool:
    """Let the connector read a table that it passes over; False where it does not.

    Returns when it runs so: every later change of the table arrives. The table has to be fit, and
    published. Raises TIMEOUT, SERVER_FAILED.
    """
    running = connector.configuration(endpoints.connect, config.name)
    before = passed_over(running)
    if running is None or table not in before:
        return False
    with connect(endpoints.source_url) as connection:
        reconfigure(connection, config, endpoints, with_passed_over(running, before - {table}))
        await_running(connection, config, endpoints, streams=True)
    return True


def _unreadable(
    config: Config, endpoints: Endpoints, known: Iterable[TableId]
) -> frozenset[TableId]:
    """Of the tables that the connector knows: another configuration may name others by now."""
    names = [str(table) for table in known]
    source = config.source.model_copy(update={"tables": names})
    alone = config.model_copy(update={"source": source})
    with connect(
        endpoints.source_url, connect_timeout=_CONNECT_SECONDS, answer_seconds=_ANSWER_SECONDS
    ) as connection:
        tables = wanted_of(inspect(connection, alone), alone, frozenset(known))
    return frozenset(table.table for table in tables if table.passed_over)
