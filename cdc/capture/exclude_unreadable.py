"""Excludes tables and columns that the connector cannot read, so that everything else goes on.

At its start the connector reads the columns of every table in its list, and fails at a table with
two columns of the same name. Such a table has already left the publication (docs/decisions/0027),
so excluding it loses nothing more; the settings list it separately, so that it is not forgotten.

While streaming, the connector fails at a value that does not fit the type its column has got since
(docs/decisions/0031). Such a column is left out of the events; the first event without it stops its
table.
"""

from collections.abc import Collection

from cdc.capture.continuity import stored_lsn
from cdc.capture.retyped import retyped_columns
from cdc.config import Config
from cdc.source.catalog.captured import wanted_of
from cdc.source.catalog.catalog import SourceTable, inspect
from cdc.source.connector import worker_rest
from cdc.source.connector.connector_start import await_running, reconfigure
from cdc.source.connector.settings import (
    columns_passed_over,
    configured_tables,
    excluded_columns,
    passed_over_tables,
    with_columns_passed_over,
    with_excluded,
    with_passed_over,
)
from cdc.source.server import slot
from cdc.source.server.connection import Connection, connect, connect_to_ask
from cdc.state.pipeline import Pipeline
from cdc.tables import ColumnId, TableId


def exclude_unreadable(
    pipeline: Pipeline, *, at_an_event: bool = False
) -> tuple[TableId | ColumnId, ...]:
    """Exclude what the failed connector cannot read, and start it with the new settings.

    Excludes unreadable tables and new columns that the connector would fail at. ``at_an_event``
    says that it failed while reading an event: then columns whose old values it cannot read are
    excluded too. Returns the tables and columns that are newly excluded; if there are none, nothing
    is changed. Raises the error of a source or worker that does not answer.
    """
    endpoints = pipeline.endpoints
    running = worker_rest.configuration(endpoints.connect, pipeline.name)
    if running is None:
        return ()
    tables, columns, known = (
        passed_over_tables(running),
        columns_passed_over(running),
        configured_tables(running),
    )
    with connect_to_ask(endpoints.source_url) as connection:
        now = _tables(connection, pipeline.config, known)
        nothing = frozenset[ColumnId]()
        changed = retyped_columns(connection, pipeline.name, known) if at_an_event else nothing
    wanted = with_passed_over(running, tables | {t.table for t in now if t.passed_over})
    wanted = with_columns_passed_over(wanted, columns | changed)
    for table in now:
        if table.unfit is None:
            wanted = with_excluded(wanted, table)
    new_columns = excluded_columns(wanted) - excluded_columns(running)
    excluded: tuple[TableId | ColumnId, ...] = (
        *sorted(passed_over_tables(wanted) - tables),
        *sorted(new_columns),
    )
    if excluded:
        worker_rest.configure(endpoints.connect, pipeline.name, wanted)
    return excluded


def refuse_moved(pipeline: Pipeline) -> None:
    """Raise CHAIN_BROKEN if the slot of a failed connector is beyond the position it has stored.

    After a restart the connector would go on from the slot, and nothing would show what it missed.
    """
    with connect_to_ask(pipeline.endpoints.source_url) as connection:
        state = slot.slot_state(connection, pipeline.name)
    if state is not None:  # read before the position, which the connector stores first
        slot.refuse_ahead(
            pipeline.name, state, stored_lsn(pipeline.endpoints.connect, pipeline.name)
        )


def take_back(pipeline: Pipeline, source: SourceTable) -> bool:
    """Let the connector read a table or its columns again; return False if none was excluded.

    New columns that it would fail at are excluded instead. Returns when the connector runs with the
    new settings: every later change of the table arrives. The table has to be fit and published.
    Raises TIMEOUT, SERVER_FAILED.
    """
    running = worker_rest.configuration(pipeline.endpoints.connect, pipeline.name)
    if running is None:
        return False
    tables, columns = passed_over_tables(running), columns_passed_over(running)
    others = {column for column in columns if column.table != source.table}
    wanted = with_passed_over(running, tables - {source.table})
    wanted = with_columns_passed_over(wanted, others)
    wanted = with_excluded(wanted, source)
    if wanted == running:
        return False
    with connect(pipeline.endpoints.source_url) as connection:
        reconfigure(connection, pipeline, wanted)
        await_running(connection, pipeline, streams=True)
    return True


def _tables(
    connection: Connection, config: Config, known: Collection[TableId]
) -> list[SourceTable]:
    """Return the tables that the connector knows: ``source.tables`` may name others by now."""
    names = [str(table) for table in known]
    source = config.source.model_copy(update={"tables": names})
    narrowed = config.model_copy(update={"source": source})
    return wanted_of(inspect(connection, narrowed), narrowed, known)
