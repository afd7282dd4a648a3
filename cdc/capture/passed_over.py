"""What the connector cannot read, kept from it so that all the rest goes on.

It reads the columns of all tables in its list as it starts, and fails at one that has two columns
of one name. Such a table has left the publication (docs/decisions/0027), so nothing of it is missed
that was not given up there; its settings name it apart, so that it is not forgotten.

As it streams, it fails at a value that is none of the type which its column has got since
(docs/decisions/0031). Such a column is left out of its events; the first one stops its table.
"""

from collections.abc import Collection

from cdc.capture.continuity import stored
from cdc.capture.retyped import retyped
from cdc.config import Config
from cdc.source.catalog.captured import wanted_of
from cdc.source.catalog.catalog import SourceTable, inspect
from cdc.source.connector import worker_rest
from cdc.source.connector.settings import (
    captured,
    columns_passed_over,
    left_out,
    passed_over,
    with_columns_passed_over,
    with_excluded,
    with_passed_over,
)
from cdc.source.connector.start import await_running, reconfigure
from cdc.source.server import slot
from cdc.source.server.connection import Connection, connect, connect_to_ask
from cdc.state.endpoints import Endpoints
from cdc.tables import ColumnId, TableId


def pass_over(
    config: Config, endpoints: Endpoints, *, at_an_event: bool = False
) -> tuple[TableId | ColumnId, ...]:
    """Name to the failed connector the tables that it is to pass over, and start it so.

    And new columns that it would not get over. With ``at_an_event`` it failed as it read one: then
    also columns whose old values it cannot read. Returns what it was not told of before; nothing is
    done where there is nothing. Raises what a source or a worker that does not answer raises.
    """
    running = worker_rest.configuration(endpoints.connect, config.name)
    if running is None:
        return ()
    tables, columns, known = passed_over(running), columns_passed_over(running), captured(running)
    with connect_to_ask(endpoints.source_url) as connection:
        now = _tables(connection, config, known)
        found = retyped(connection, config.name, known) if at_an_event else frozenset[ColumnId]()
    told = with_passed_over(running, tables | {each.table for each in now if each.passed_over})
    told = with_columns_passed_over(told, columns | found)
    for table in now:
        if table.unfit is None:
            told = with_excluded(told, table)
    new = left_out(told) - left_out(running)
    more: tuple[TableId | ColumnId, ...] = (
        *sorted(passed_over(told) - tables),
        *sorted(new),
    )
    if more:
        worker_rest.configure(endpoints.connect, config.name, told)
    return more


def refuse_moved(config: Config, endpoints: Endpoints) -> None:
    """Raise CHAIN_BROKEN where the slot of a failed connector is beyond what that has stored.

    Started again it would go on from there, and nothing would show what it has missed.
    """
    with connect_to_ask(endpoints.source_url) as connection:
        state = slot.slot_state(connection, config.name)
    if state is not None:  # asked for before the place, which the connector stores first
        slot.refuse_ahead(config.name, state, stored(endpoints.connect, config.name))


def take_back(config: Config, endpoints: Endpoints, source: SourceTable) -> bool:
    """Let the connector read a table, or columns of it, that it passes over; False for any other.

    New columns that it would not get over are left out by now. Returns when it runs so: every later
    change of the table arrives. The table has to be fit, and published. Raises TIMEOUT,
    SERVER_FAILED.
    """
    running = worker_rest.configuration(endpoints.connect, config.name)
    if running is None:
        return False
    tables, columns = passed_over(running), columns_passed_over(running)
    told = with_passed_over(running, tables - {source.table})
    told = with_columns_passed_over(told, {each for each in columns if each.table != source.table})
    told = with_excluded(told, source)
    if told == running:
        return False
    with connect(endpoints.source_url) as connection:
        reconfigure(connection, config, endpoints, told)
        await_running(connection, config, endpoints, streams=True)
    return True


def _tables(
    connection: Connection, config: Config, known: Collection[TableId]
) -> list[SourceTable]:
    """Those that the connector knows: another configuration may name others by now."""
    names = [str(table) for table in known]
    source = config.source.model_copy(update={"tables": names})
    alone = config.model_copy(update={"source": source})
    return wanted_of(inspect(connection, alone), alone, known)
