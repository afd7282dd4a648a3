"""Have the job calculate a derived table anew, whatever its rows are now."""

import uuid
from collections.abc import Callable

from cdc.client.derived.at_cut import definitions, one_of, published_row
from cdc.client.status.cut_wait import wait_for_cut
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import Ledger
from cdc.source.server import barrier
from cdc.source.server.connection import connect
from cdc.state.derived_requests import rebuilds
from cdc.state.pipeline import Pipeline
from cdc.tables import TableState


def rebuild(
    pipeline: Pipeline, name: str, *, timeout: float, tell: Callable[[str], None]
) -> DerivedEntry:
    """Return the table's entry in the first cut that has it calculated anew.

    Readers see the old rows until then; one commit replaces them. ``timeout`` is in seconds. Raises
    TIMEOUT if there is no such cut in time, and TABLE_STOPPED if the query fails. A request that
    was given up on still waits for the job.
    """
    config = pipeline.config
    last = published_row(config, None)
    definition = one_of(definitions(config, last), name)
    table = definition.table
    before = last.derived_entry(str(table))
    requests = rebuilds(config.state_dir)
    if definition.late is not None:
        requests.ask(definition.late.rows)  # first: the log says whether they are right
    requests.ask(table)
    with connect(pipeline.endpoints.source_url) as connection:
        barrier.touch(connection, uuid.uuid4().hex)  # an idle source would bring no cut
    tell(f"calculating {table}")
    row = wait_for_cut(
        Ledger(ledger_path(config)),
        lambda row: (
            not requests.is_asked(table) and _is_other(before, row.derived_entry(str(table)))
        ),
        after=last.cut,
        timeout=timeout,
    )
    entry = None if row is None else row.derived_entry(str(table))
    if entry is None:
        raise CdcError(
            ErrorKind.TIMEOUT,
            f"{table} was not calculated anew within {timeout:g} s",
            remedy="see wal2lake status; the job does it when it can, or allow more time",
        )
    if entry.state == TableState.STOPPED.value:
        raise CdcError(ErrorKind.TABLE_STOPPED, f"{table} is stopped: {entry.reason}")
    return entry


def _is_other(before: DerivedEntry | None, now: DerivedEntry | None) -> bool:
    """Return whether the table has another version, is another Delta table, or failed."""
    if now is None or now.state == TableState.STOPPED.value:
        return now is not None
    if before is None or before.delta_id != now.delta_id:
        return now.version >= 0
    return now.version > before.version
