"""Alters a table by an entry of its log, without Spark's planner."""

import time
from uuid import uuid4

from cdc.lake.commit.alteration import Alteration, SetProperties, altered
from cdc.lake.commit.log_entry import Origin, altered_entry
from cdc.lake.commit.protocol import PLAIN, TakeMergeError, refusal
from cdc.lake.commit.put import put_entry
from cdc.lake.commit.replay import TableState
from cdc.lake.commit.snapshot import LogReader
from cdc.lake.commit.table_metadata import Metadata, Protocol
from cdc.lake.files.store_of import store_of


def alter_without_spark(path: str, change: Alteration, metadata: str) -> int:
    """Alter the table at ``path`` in one commit; return its version.

    The commit has ``metadata``, the position. Raises TakeMergeError if Spark has to do it, CONFLICT
    if another commit came first, CHAIN_BROKEN if the log cannot be read, or OSError.
    """
    log = LogReader(path)
    state = log.newest()
    made = altered(*_known(state, change), change)
    origin = Origin(
        read_version=state.version,
        millis=time.time_ns() // 1_000_000,
        metadata=metadata,
        transaction=str(uuid4()),
        counts={},
    )
    text = altered_entry(made.operation, made.parameters, made.action, origin)
    log.refuse_changed()
    put_entry(store_of(path), state.version + 1, text)
    return state.version + 1


def _known(state: TableState, change: Alteration) -> tuple[Protocol, Metadata]:
    """Return what the table is; a table without any feature may get other properties only."""
    protocol, metadata = state.described()
    is_plain = (protocol.reader, protocol.writer) == PLAIN
    if is_plain and isinstance(change, SetProperties):
        return protocol, metadata
    if (reason := refusal(protocol, metadata)) is not None:
        raise TakeMergeError(reason)
    return protocol, metadata
