"""The beginning of a new epoch: the broken chain is let go, and what is left behind is recorded.

Interrupted anywhere, either the chain is found whole again, or a start finds the position lost
and says so: none goes on by the stream alone before the epoch stands in the lake.
"""

from collections.abc import Callable, Collection
from typing import Final

from cdc.capture.continuity import Standing, clear, sent, standing, unfinished
from cdc.capture.provenance import known_topics
from cdc.capture.refill import go_on, refuse_far
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.offsets import end_offsets
from cdc.kafka.same_topic import Expected
from cdc.kafka.topics import TopicSpec, topic_ids
from cdc.lake.layout import epochs_path, log_path
from cdc.lake.lock import alone
from cdc.lake.records import epochs
from cdc.lake.records.epochs import Epoch
from cdc.lake.table.positions import landed_position
from cdc.source.catalog.catalog import SourceTable
from cdc.source.connector import worker_rest
from cdc.source.server.connection import Connection
from cdc.source.server.origin import origin
from cdc.state.endpoints import Endpoints
from cdc.waiting import until

_TRIAL_SECONDS: Final = 120.0


def begin(
    connection: Connection,
    config: Config,
    endpoints: Endpoints,
    tables: list[SourceTable],
    *,
    specs: Collection[TopicSpec],
    start: Callable[[], None],
    say: Callable[[str], None] = lambda _: None,
) -> Epoch:
    """Stop the connector, forget its position, drop the slot, record the epoch.

    ``start`` lets the connector run as it was, to see whether it fails; ``say`` hears of what takes
    long. Raises CONFLICT while a job runs, for a slot that is somebody else's, and where nothing is
    broken, CHAIN_BROKEN where a topic lost too many offsets; then nothing is changed.
    """
    with alone(config):
        reason = _broken(connection, config, endpoints, tables, start)
        expected = _expected(config, specs)
        refuse_far(endpoints.kafka, expected, specs)
        clear(connection, config, endpoints)
        replication = config.kafka.replication_factor
        go_on(endpoints.kafka, expected, specs, replication=replication, say=say)
        return _recorded(connection, config, endpoints, [spec.name for spec in specs], reason)


def _expected(config: Config, specs: Collection[TopicSpec]) -> dict[str, Expected]:
    landed, epoch = landed_position(log_path(config)), epochs.last(epochs_path(config))
    return known_topics(landed, epoch, [spec.name for spec in specs])


def _recorded(
    connection: Connection, config: Config, endpoints: Endpoints, topics: list[str], reason: str
) -> Epoch:
    landed, now = landed_position(log_path(config)), origin(connection)
    known = {*topics, *(landed.offsets if landed else ())}
    ends = end_offsets(endpoints.kafka, sorted(known))
    return epochs.begin(
        epochs_path(config),
        name=config.name,
        reason=reason,
        lsn=now.lsn,
        left_behind=dict.fromkeys(topics, -1) | {topic: end - 1 for topic, end in ends.items()},
        topic_ids=topic_ids(endpoints.kafka, topics),
        system=now.system,
        timeline=now.timeline,
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
            return error.coded
        raise
    if found is Standing.WHOLE:
        if unfinished(worker_rest.offsets(endpoints.connect, config.name) or {}):
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
    passed = origin(connection).lsn
    failed = False

    def settled() -> bool:
        nonlocal failed
        status = worker_rest.status(endpoints.connect, config.name)
        failed = status is not None and status.failed
        return failed or sent(worker_rest.offsets(endpoints.connect, config.name) or {}) >= passed

    until(settled, _TRIAL_SECONDS, f"connector {config.name} neither failed nor caught up")
    return failed
