"""The beginning of a new epoch: the broken chain is let go, and what is left behind is recorded.

Interrupted anywhere, either the chain is found whole again, or a start finds the position lost
and says so: none goes on by the stream alone before the epoch stands in the lake.
"""

from collections.abc import Callable, Collection
from typing import Final

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.offsets import end_offsets
from cdc.lake import epochs
from cdc.lake.epochs import Epoch
from cdc.lake.job_state import alone
from cdc.lake.layout import epochs_path, log_path
from cdc.lake.progress import landed_position
from cdc.source import connector
from cdc.source.catalog import SourceTable
from cdc.source.continuity import Standing, clear, sent, standing, unfinished, until
from cdc.source.postgres import Connection, translated
from cdc.stack.endpoints import Endpoints

_TRIAL_SECONDS: Final = 120.0


def begin(
    connection: Connection,
    config: Config,
    endpoints: Endpoints,
    tables: list[SourceTable],
    *,
    topics: Collection[str],
    start: Callable[[], None],
) -> Epoch:
    """Stop the connector, forget its position, drop the slot, record the epoch.

    ``start`` lets the connector run as it was, to see whether it fails. Raises CONFLICT while a
    job runs, for a slot that is somebody else's, and where nothing is broken; then nothing is
    changed.
    """
    with alone(config):
        reason = _broken(connection, config, endpoints, tables, start)
        clear(connection, config, endpoints)
        landed = landed_position(log_path(config))
        known = {*topics, *(landed.offsets if landed else ())}
        ends = end_offsets(endpoints.kafka, sorted(known))
        return epochs.begin(
            epochs_path(config),
            name=config.name,
            reason=reason,
            lsn=_current_lsn(connection),
            left_behind=dict.fromkeys(topics, -1) | {topic: end - 1 for topic, end in ends.items()},
        )


def _broken(
    connection: Connection,
    config: Config,
    endpoints: Endpoints,
    tables: list[SourceTable],
    start: Callable[[], None],
) -> str:
    """Why the chain cannot go on. Raises CONFLICT where it can."""
    try:
        found = standing(connection, config, endpoints, tables)
    except CdcError as error:
        if error.kind is ErrorKind.CHAIN_BROKEN:
            return error.message
        raise
    if found is Standing.WHOLE:
        if unfinished(connector.offsets(endpoints.connect, config.name) or {}):
            return "the first snapshot was not finished"
        if _fails(connection, config, endpoints, start):
            return f"connector {config.name} fails at what it has to read next"
    raise CdcError(
        ErrorKind.CONFLICT,
        f"nothing is broken: pipeline {config.name} can go on without a new epoch",
        remedy="wal2lake up, without --new-epoch",
    )


def _fails(
    connection: Connection, config: Config, endpoints: Endpoints, start: Callable[[], None]
) -> bool:
    """Whether a started connector fails before it has passed where the source is now.

    Raises TIMEOUT when it does neither.
    """
    start()
    passed = _current_lsn(connection)
    failed = False

    def settled() -> bool:
        nonlocal failed
        status = connector.status(endpoints.connect, config.name)
        failed = status is not None and status.failed
        return failed or sent(connector.offsets(endpoints.connect, config.name) or {}) >= passed

    until(settled, _TRIAL_SECONDS, f"connector {config.name} neither failed nor caught up")
    return failed


def _current_lsn(connection: Connection) -> int:
    with translated("asking where the source is"):
        row = connection.execute("SELECT (pg_current_wal_lsn() - '0/0')::bigint").fetchone()
    if row is None:
        raise CdcError(ErrorKind.INTERNAL, "Postgres does not say where its WAL ends")
    return int(row[0])
