"""Begins a new epoch: abandons the broken chain, and records what is left behind.

If it is interrupted anywhere, the next start either finds the chain whole, or reports a lost
position: no start continues with the stream alone before the epoch is recorded in the lake.
"""

from collections.abc import Callable, Collection
from typing import Final

from cdc.capture.continuity import (
    ChainState,
    chain_state,
    clear_connector,
    in_first_snapshot,
    position_lsn,
)
from cdc.capture.recorded_origin import recorded_topics
from cdc.capture.refill_topics import refill_topics, refuse_far
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.offsets import end_offsets
from cdc.kafka.same_topic import ExpectedTopic
from cdc.kafka.topics import TopicSpec, topic_ids
from cdc.lake.layout import epochs_path, log_path
from cdc.lake.lock import only_job
from cdc.lake.records import epochs
from cdc.lake.records.epochs import Epoch
from cdc.lake.table.positions import landed_position
from cdc.source.catalog.catalog import SourceTable
from cdc.source.connector import worker_rest
from cdc.source.server.connection import Connection
from cdc.source.server.origin import origin
from cdc.state.pipeline import Pipeline
from cdc.waiting import until

_TRIAL_SECONDS: Final = 120.0


def begin(
    connection: Connection,
    pipeline: Pipeline,
    tables: list[SourceTable],
    *,
    specs: Collection[TopicSpec],
    start: Callable[[], None],
    say: Callable[[str], None] = lambda _: None,
) -> Epoch:
    """Stop the connector, delete its position, drop the slot, and record the epoch.

    ``start`` runs the connector with its old settings, to see whether it fails; ``say`` receives
    progress messages of long steps. Raises CONFLICT while a job runs, for a slot of someone else,
    and if nothing is broken; CHAIN_BROKEN if a topic lost too many offsets. Nothing is changed
    then.
    """
    config = pipeline.config
    with only_job(config):
        reason = _broken(connection, pipeline, tables, start)
        expected = _expected(config, specs)
        refuse_far(pipeline.endpoints.kafka, expected, specs)
        clear_connector(connection, pipeline)
        replication = config.kafka.replication_factor
        refill_topics(pipeline.endpoints.kafka, expected, specs, replication=replication, say=say)
        return _recorded(connection, pipeline, [spec.name for spec in specs], reason)


def _expected(config: Config, specs: Collection[TopicSpec]) -> dict[str, ExpectedTopic]:
    landed, epoch = landed_position(log_path(config)), epochs.last(epochs_path(config))
    return recorded_topics(landed, epoch, [spec.name for spec in specs])


def _recorded(connection: Connection, pipeline: Pipeline, topics: list[str], reason: str) -> Epoch:
    landed, now = landed_position(log_path(pipeline.config)), origin(connection)
    all_topics = {*topics, *(landed.offsets if landed else ())}
    ends = end_offsets(pipeline.endpoints.kafka, sorted(all_topics))
    return epochs.begin(
        epochs_path(pipeline.config),
        name=pipeline.name,
        reason=reason,
        lsn=now.lsn,
        left_behind=dict.fromkeys(topics, -1) | {topic: end - 1 for topic, end in ends.items()},
        topic_ids=topic_ids(pipeline.endpoints.kafka, topics),
        system=now.system,
        timeline=now.timeline,
    )


def _broken(
    connection: Connection, pipeline: Pipeline, tables: list[SourceTable], start: Callable[[], None]
) -> str:
    """Return why the chain cannot go on; raise CONFLICT if it can."""
    try:
        state = chain_state(connection, pipeline, tables)
    except CdcError as error:
        if error.kind is ErrorKind.CHAIN_BROKEN:
            return error.coded
        raise
    if state is ChainState.WHOLE:
        if in_first_snapshot(worker_rest.offsets(pipeline.endpoints.connect, pipeline.name) or {}):
            return "the first snapshot was not finished"
        if _fails(connection, pipeline, start):
            return f"connector {pipeline.name} fails at the next change it has to read"
    raise CdcError(
        ErrorKind.CONFLICT,
        f"nothing is broken: pipeline {pipeline.name} can go on without a new epoch",
        remedy="run wal2lake up without --new-epoch",
    )


def _fails(connection: Connection, pipeline: Pipeline, start: Callable[[], None]) -> bool:
    """Start the connector; return whether it fails before it passes the source's current LSN.

    Raises TIMEOUT if it does neither.
    """
    start()
    target, worker = origin(connection).lsn, pipeline.endpoints.connect
    failed = False

    def settled() -> bool:
        nonlocal failed
        status = worker_rest.status(worker, pipeline.name)
        failed = status is not None and status.failed
        return failed or position_lsn(worker_rest.offsets(worker, pipeline.name) or {}) >= target

    until(settled, _TRIAL_SECONDS, f"connector {pipeline.name} neither failed nor caught up")
    return failed
