"""Whether a start continues the chain of events, begins it, or would tear it.

The connector's first snapshot and the stream that follows it fit together because one slot was
made for both. A second attempt at the snapshot does not: it misses deletes in between, and reads
rows that the stream brings again. So an unfinished one is done again from nothing, unless some of
it is in the lake.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from cdc.capture.provenance import known_origin, known_topics
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
from cdc.source.connector.settings import SNAPSHOT_MODE, STREAM_ONLY
from cdc.source.server import origin, slot
from cdc.source.server.connection import Connection
from cdc.source.server.slot import LostChangesError
from cdc.state.endpoints import Endpoints
from cdc.tables import STRUCTURE
from cdc.waiting import until

_FREE_SECONDS: Final = 60.0
_ASK_SECONDS: Final = 2.0
_POSITIONS: Final = ("lsn", "lsn_proc", "lsn_commit")


class Standing(Enum):
    """What a start finds of the chain, where nothing of it is broken."""

    WHOLE = "whole"  # connector, slot and position go on
    UNFINISHED = "unfinished"  # the first snapshot was interrupted, and nothing of it has landed
    NOTHING_SENT = "nothing sent"


def continues(
    connection: Connection, config: Config, endpoints: Endpoints, tables: list[SourceTable]
) -> bool:
    """True when connector, slot and position go on; False when nothing was ever sent.

    Raises CONFLICT when the slot is somebody else's, CHAIN_BROKEN when going on loses changes.
    """
    now = standing(connection, config, endpoints, tables)
    if now is Standing.WHOLE:
        return True
    clear(connection, config, endpoints)
    if now is Standing.UNFINISHED:
        delete_topics(endpoints.kafka, [*_topics(config, tables), markers(config)])
    return False


def standing(
    connection: Connection, config: Config, endpoints: Endpoints, tables: list[SourceTable]
) -> Standing:
    """Look at the chain and change nothing; raises as ``continues`` does."""
    _refuse_other_pipeline(config)
    topics = _topics(config, tables)
    refuse_other_source(connection, config, endpoints)
    _refuse_broken_topics(config, endpoints, [*topics, *control_topics(config)])
    status = worker_rest.status(endpoints.connect, config.name)
    state = slot.slot_state(connection, config.name)
    slot.refuse_foreign(config.name, state, read_by_us=bool(status and status.tasks))
    position = worker_rest.offsets(endpoints.connect, config.name)
    if position is None:
        _refuse_lost_position(config, endpoints, topics)
        return Standing.NOTHING_SENT
    if unfinished(position) and config.connect.url is None:
        _refuse_landed(config)
        return Standing.UNFINISHED
    slot.refuse_ahead(config.name, slot.readable(config.name, state), sent(position))
    _refuse_other_lake(config, endpoints)
    return Standing.WHOLE


def unfinished(position: dict[str, object]) -> bool:
    """Whether the connector was still in its first snapshot when it stored this position.

    A blocking one that was interrupted leaves the same mark for good, and the stream goes on.
    """
    completed = str(position.get("snapshot_completed", "true")).lower() != "false"
    return not completed and position.get("snapshot") != "BLOCKING"


def sent(position: Mapping[str, Any]) -> int:
    """The furthest place in the WAL that the connector has stored; 0 where there is none."""
    return max(int(position.get(name) or 0) for name in _POSITIONS)


def stored(connect_url: str, name: str) -> int:
    """As ``sent``, of a worker that answers at once; 0 of one that does not."""
    try:
        return sent(worker_rest.offsets(connect_url, name, patience=_ASK_SECONDS) or {})
    except CdcError:
        return 0


def clear(connection: Connection, config: Config, endpoints: Endpoints) -> None:
    """Stop the connector, forget its position, drop the slot: its next start makes a new one.

    Whatever it had sent is committed or undone afterwards, and none of it comes later: the worker
    ends the transactions of its earlier tasks before it forgets a position.
    """
    worker_rest.stop(endpoints.connect, config.name)
    until(
        lambda: not slot.is_read(connection, config.name),
        _FREE_SECONDS,
        f"slot {config.name} was not given up",
    )
    worker_rest.forget_offsets(endpoints.connect, config.name)
    slot.drop(connection, config.name)


def _topics(config: Config, tables: list[SourceTable]) -> list[str]:
    return [table.table.topic(config.name) for table in tables]


def control_topics(config: Config) -> list[str]:
    """Those whose events land beside the tables'."""
    return [STRUCTURE.topic(config.name), markers(config)]


def markers(config: Config) -> str:
    """The topic of BEGIN and END of transactions."""
    return f"{config.name}.transaction"


def refuse_other_source(connection: Connection, config: Config, endpoints: Endpoints) -> None:
    """Raises CHAIN_BROKEN where the source is not the one that the lake and the connector know."""
    landed, epoch = landed_position(log_path(config)), last(epochs_path(config))
    reached = sent(worker_rest.offsets(endpoints.connect, config.name) or {})
    origin.refuse_other(known_origin(landed, epoch), origin.origin(connection), reached)


def _refuse_broken_topics(config: Config, endpoints: Endpoints, topics: list[str]) -> None:
    landed, epoch = landed_position(log_path(config)), last(epochs_path(config))
    expected = known_topics(landed, epoch, topics)
    refuse_broken(expected, existing_topics(endpoints.kafka, expected))


def _refuse_lost_position(config: Config, endpoints: Endpoints, topics: list[str]) -> None:
    """Also where an epoch was recorded and its connector has sent nothing yet."""
    filled = [name for name, end in end_offsets(endpoints.kafka, topics).items() if end > 0]
    if filled:
        raise LostChangesError(
            f"topic {filled[0]} holds events, but the connector's position is lost",
            reason=Reason.POSITION_LOST,
            detail="what was changed or deleted since its last event cannot be known",
        )
    if (epoch := last(epochs_path(config))) is not None:
        raise LostChangesError(
            f"epoch {epoch.number} was begun, but connector {config.name} has no position in it",
            reason=Reason.POSITION_LOST,
        )


def _refuse_other_pipeline(config: Config) -> None:
    """The positions of its tables are offsets in topics of another name."""
    landed, epoch = landed_position(log_path(config)), last(epochs_path(config))
    topics = landed.topic_ids if landed else ()
    names = {epoch.name} if epoch else {topic.partition(".")[0] for topic in topics}
    if names and config.name not in names:
        before = ", ".join(sorted(names))
        raise CdcError(
            ErrorKind.CHAIN_BROKEN,
            f"the lake {config.lake.path} is of pipeline {before}, and this one is {config.name}",
            reason=Reason.OTHER_PIPELINE,
            remedy=f"correct name or lake.path; or drop slot {before}, which keeps WAL, and "
            f"{slot.NEW_EPOCH}",
        )


def _refuse_other_lake(config: Config, endpoints: Endpoints) -> None:
    """What the topics hold has gaps, and only the lake of that time knows where they are."""
    settings = worker_rest.configuration(endpoints.connect, config.name) or {}
    if settings.get(SNAPSHOT_MODE) == STREAM_ONLY and last(epochs_path(config)) is None:
        raise CdcError(
            ErrorKind.CHAIN_BROKEN,
            f"connector {config.name} began in an epoch that the lake {config.lake.path} does not "
            "know",
            reason=Reason.OTHER_LAKE,
            detail="changes from before it are missing in the topics",
            remedy=f"correct lake.path, or {slot.NEW_EPOCH}",
        )


def _refuse_landed(config: Config) -> None:
    if landed_position(log_path(config)) is not None:
        raise LostChangesError(
            "the first snapshot was interrupted, and a part of it is in the lake",
            reason=Reason.SNAPSHOT_INTERRUPTED,
            remedy=f"remove {config.lake.path} and start again: nothing else is in it yet; or "
            f"{slot.NEW_EPOCH}",
        )
