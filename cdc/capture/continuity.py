"""Decides whether a start continues the chain of events, begins a new one, or would break it.

The connector's first snapshot and the stream after it fit together because they share one slot.
A second attempt at the snapshot does not fit: it misses deletes in between, and reads rows that
the stream sends again. So an unfinished snapshot is started over from scratch, unless a part of it
has already landed in the lake.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from cdc.capture.recorded_origin import recorded_origin, recorded_topics
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind, Reason
from cdc.kafka.offsets import end_offsets
from cdc.kafka.same_topic import refuse_broken
from cdc.kafka.topic_watch import existing_topics
from cdc.kafka.topics import delete_topics
from cdc.lake.layout import epochs_path, log_path
from cdc.lake.records.epochs import last
from cdc.lake.table.positions import landed_position
from cdc.source.catalog.catalog import SourceTable
from cdc.source.connector import worker_rest
from cdc.source.connector.settings import FIRST, SNAPSHOT_MODE, STREAM_ONLY
from cdc.source.server import origin, slot
from cdc.source.server.connection import Connection
from cdc.source.server.slot import LostChangesError
from cdc.state.pipeline import Pipeline
from cdc.tables import STRUCTURE
from cdc.waiting import until

_FREE_SECONDS: Final = 60.0
_ASK_SECONDS: Final = 2.0
_POSITIONS: Final = ("lsn", "lsn_proc", "lsn_commit")


class ChainState(Enum):
    """Says at a start whether the chain can go on, or has to begin from scratch."""

    WHOLE = "whole"  # connector, slot and position can go on
    UNFINISHED = "unfinished"  # the first snapshot was interrupted, and nothing of it has landed
    NOTHING_SENT = "nothing sent"  # the connector has sent no event yet


def continues(connection: Connection, pipeline: Pipeline, tables: list[SourceTable]) -> bool:
    """Return whether connector, slot and position can go on.

    If not, the chain has to start from scratch; what an earlier attempt left is removed.

    Raises CONFLICT if the slot belongs to someone else, CHAIN_BROKEN if going on would lose
    changes.
    """
    state = chain_state(connection, pipeline, tables)
    if state is ChainState.WHOLE:
        return True
    clear_connector(connection, pipeline)
    if state is ChainState.UNFINISHED:
        topics = [*_topics(pipeline.config, tables), marker_topic(pipeline.config)]
        delete_topics(pipeline.endpoints.kafka, topics)
    return False


def chain_state(
    connection: Connection, pipeline: Pipeline, tables: list[SourceTable]
) -> ChainState:
    """Return the state of the chain without changing anything; raises like ``continues``."""
    config = pipeline.config
    _refuse_other_pipeline(config)
    topics = _topics(config, tables)
    refuse_other_source(connection, pipeline)
    _refuse_broken_topics(pipeline, [*topics, *control_topics(config)])
    status = worker_rest.status(pipeline.endpoints.connect, pipeline.name)
    state = slot.slot_state(connection, pipeline.name)
    slot.refuse_foreign(pipeline.name, state, read_by_us=bool(status and status.tasks))
    position = worker_rest.offsets(pipeline.endpoints.connect, pipeline.name)
    if position is None:
        _refuse_lost_position(pipeline, topics)
        return ChainState.NOTHING_SENT
    if in_first_snapshot(position) and config.connect.url is None:
        _refuse_landed(config)
        return ChainState.UNFINISHED
    slot.refuse_ahead(pipeline.name, slot.readable(pipeline.name, state), position_lsn(position))
    _refuse_other_lake(pipeline)
    return ChainState.WHOLE


def in_first_snapshot(position: dict[str, object]) -> bool:
    """Return whether the connector stored this position during its first snapshot.

    An interrupted blocking snapshot leaves the same mark for ever, although the stream goes on.
    """
    completed = str(position.get("snapshot_completed", "true")).lower() != "false"
    return not completed and position.get("snapshot") != "BLOCKING"


def position_lsn(position: Mapping[str, Any]) -> int:
    """Return the highest LSN in the connector's stored position; 0 if it has none."""
    return max(int(position.get(name) or 0) for name in _POSITIONS)


def stored_lsn(connect_url: str, name: str) -> int:
    """Return the highest LSN that the connector has stored; 0 if the worker does not answer."""
    try:
        return position_lsn(worker_rest.offsets(connect_url, name, patience=_ASK_SECONDS) or {})
    except CdcError:
        return 0


def clear_connector(connection: Connection, pipeline: Pipeline) -> None:
    """Stop the connector, delete its position and drop the slot; its next start creates a new one.

    Afterwards everything it has sent is either committed or rolled back, and nothing of it arrives
    later: the worker ends the transactions of earlier tasks before it deletes a position.
    """
    worker_rest.stop(pipeline.endpoints.connect, pipeline.name)
    until(
        lambda: not slot.is_read(connection, pipeline.name),
        _FREE_SECONDS,
        f"slot {pipeline.name} was not released",
    )
    worker_rest.forget_offsets(pipeline.endpoints.connect, pipeline.name)
    slot.drop(connection, pipeline.name)


def _topics(config: Config, tables: list[SourceTable]) -> list[str]:
    return [table.table.topic(config.name) for table in tables]


def control_topics(config: Config) -> list[str]:
    """Return the control topics whose events land together with those of the tables."""
    return [STRUCTURE.topic(config.name), marker_topic(config)]


def marker_topic(config: Config) -> str:
    """Return the topic of transaction markers (BEGIN and END)."""
    return f"{config.name}.transaction"


def refuse_other_source(connection: Connection, pipeline: Pipeline) -> None:
    """Raise CHAIN_BROKEN if the source is not the one that the lake and the connector follow."""
    landed, epoch = landed_position(log_path(pipeline.config)), last(epochs_path(pipeline.config))
    reached = position_lsn(worker_rest.offsets(pipeline.endpoints.connect, pipeline.name) or {})
    origin.refuse_other(recorded_origin(landed, epoch), origin.origin(connection), reached)


def _refuse_broken_topics(pipeline: Pipeline, topics: list[str]) -> None:
    landed, epoch = landed_position(log_path(pipeline.config)), last(epochs_path(pipeline.config))
    expected = recorded_topics(landed, epoch, topics)
    refuse_broken(expected, existing_topics(pipeline.endpoints.kafka, expected))


def _refuse_lost_position(pipeline: Pipeline, topics: list[str]) -> None:
    """Raises also if an epoch was recorded, but its connector has sent nothing yet."""
    ends = end_offsets(pipeline.endpoints.kafka, topics)
    filled = [name for name, end in ends.items() if end > 0]
    if filled:
        raise LostChangesError(
            f"topic {filled[0]} holds events, but the connector's position is lost",
            reason=Reason.POSITION_LOST,
            detail="changes and deletes since its last event cannot be determined",
        )
    if (epoch := last(epochs_path(pipeline.config))) is not None:
        raise LostChangesError(
            f"epoch {epoch.number} was begun, but connector {pipeline.name} has no position in it",
            reason=Reason.POSITION_LOST,
        )


def _refuse_other_pipeline(config: Config) -> None:
    """The positions of the lake's tables are offsets in topics of that pipeline."""
    landed, epoch = landed_position(log_path(config)), last(epochs_path(config))
    topics = landed.topic_ids if landed else ()
    names = {epoch.name} if epoch else {topic.partition(".")[0] for topic in topics}
    if names and config.name not in names:
        before = ", ".join(sorted(names))
        raise CdcError(
            ErrorKind.CHAIN_BROKEN,
            f"the lake {config.lake.path} belongs to pipeline {before}, not to {config.name}",
            reason=Reason.OTHER_PIPELINE,
            remedy=f"correct name or lake.path; or drop slot {before}, which retains WAL, and "
            f"{slot.NEW_EPOCH}",
        )


def _refuse_other_lake(pipeline: Pipeline) -> None:
    """The topics have gaps, and only the lake that recorded the epoch knows where they are."""
    settings = worker_rest.configuration(pipeline.endpoints.connect, pipeline.name) or {}
    begun_late = settings.get(SNAPSHOT_MODE) == STREAM_ONLY and FIRST not in settings
    if begun_late and last(epochs_path(pipeline.config)) is None:
        raise CdcError(
            ErrorKind.CHAIN_BROKEN,
            f"connector {pipeline.name} began in an epoch that the lake "
            f"{pipeline.config.lake.path} does not know",
            reason=Reason.OTHER_LAKE,
            detail="changes from before that epoch are missing in the topics",
            remedy=f"correct lake.path, or {slot.NEW_EPOCH}",
        )


def _refuse_landed(config: Config) -> None:
    if landed_position(log_path(config)) is not None:
        raise LostChangesError(
            "the first snapshot was interrupted, and part of it is already in the lake",
            reason=Reason.SNAPSHOT_INTERRUPTED,
            remedy=f"remove {config.lake.path}, which holds nothing else yet, and start again; or "
            f"{slot.NEW_EPOCH}",
        )
