"""Changes properties of a table by an entry of its log, without Spark's planner."""

import time
from collections.abc import Mapping
from uuid import uuid4

from cdc.lake.commit.log_entry import Origin, properties_entry
from cdc.lake.commit.protocol import PLAIN, TakeMergeError, refusal
from cdc.lake.commit.put import put_entry
from cdc.lake.commit.replay import TableState
from cdc.lake.commit.snapshot import LogReader
from cdc.lake.commit.table_metadata import Metadata
from cdc.lake.files.store_of import store_of


def set_without_spark(path: str, changes: Mapping[str, str], metadata: str) -> int:
    """Set properties of the table at ``path`` that no file depends on; return the version.

    The commit has ``metadata``, the position. Raises TakeMergeError if Spark has to do it, CONFLICT
    if another commit came first, CHAIN_BROKEN if the log cannot be read, or OSError.
    """
    log = LogReader(path)
    state = log.newest()
    origin = Origin(
        read_version=state.version,
        millis=time.time_ns() // 1_000_000,
        metadata=metadata,
        transaction=str(uuid4()),
        counts={},
    )
    text = properties_entry(_known(state).with_properties(changes), changes, origin)
    log.refuse_changed()
    put_entry(store_of(path), state.version + 1, text)
    return state.version + 1


def _known(state: TableState) -> Metadata:
    protocol, metadata = state.described()
    is_plain = (protocol.reader, protocol.writer) == PLAIN
    reason = None if is_plain else refusal(protocol, metadata)
    if reason is not None:
        raise TakeMergeError(reason)
    return metadata
