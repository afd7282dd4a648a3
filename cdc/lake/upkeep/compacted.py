"""Compacts a table that delta-rs writes to an object store, by an entry of the next version alone.

delta-rs finds no conflict between two compactions: the second one adds the rows of the first one's
file once more. And where the answer to an entry is lost it puts the entry again, as another
version, whatever number of retries the commit's properties allow. On a disk neither can happen: a
lock lets one job write, and every put has an answer.
"""

import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import structlog

from cdc.lake.commit.combined import CombineError
from cdc.lake.commit.log_entry import Change, Origin, combined_counts, entry
from cdc.lake.commit.plain_combined import combine_plain
from cdc.lake.commit.protocol import (
    PLAIN,
    PLAIN_FEATURES,
    WITH_FEATURES,
    TakeMergeError,
)
from cdc.lake.commit.put import put_entry
from cdc.lake.commit.replay import LiveFile, TableState
from cdc.lake.commit.snapshot import LogReader
from cdc.lake.commit.table_metadata import Protocol
from cdc.lake.files.store_of import store_of
from cdc.lake.table.checkpoint import write_checkpoint

logger = structlog.get_logger(__name__)


def compact_in_store(path: str, number: int, facts: Mapping[str, Any]) -> None:
    """Put one file in the place of the ``number`` smallest, in one commit that says ``facts``.

    A table with something in it that only Spark knows stays as it is, which is logged. Raises
    StoreError if somebody else has committed meanwhile, or as the table's store does; the table is
    then as it was.
    """
    try:
        _compact(path, number, facts)
    except (CombineError, TakeMergeError) as error:
        logger.warning("small files stay", path=path, reason=str(error))


def _compact(path: str, number: int, facts: Mapping[str, Any]) -> None:
    store, state = store_of(path), LogReader(path).newest()
    small = _newest_first(sorted(state.files.values(), key=lambda file: file.size)[:number])
    protocol, metadata = state.described()
    _refuse_more(protocol)
    measured = [column.name for column in metadata.columns if isinstance(column.type, str)]
    made = combine_plain(store, small, measured, int(time.time() * 1000), _writer)
    version = state.version + 1
    put_entry(store, version, _entry(state, small, made, facts))
    if version % metadata.checkpoint_interval == 0:
        write_checkpoint(path, version)


def _refuse_more(protocol: Protocol) -> None:
    """Refuse rows that are marked as deleted, columns under other names, and what is not known."""
    versions = (protocol.reader, protocol.writer)
    more = (protocol.reader_features | protocol.writer_features) - PLAIN_FEATURES
    if versions not in {PLAIN, WITH_FEATURES} or more:
        raise TakeMergeError(f"its protocol is {versions}, with {sorted(more)}")


def _writer(sink: pa.NativeFile, schema: pa.Schema, _: list[str]) -> pq.ParquetWriter:
    """Return what writes the file: rows of such a table repeat names and paths."""
    return pq.ParquetWriter(sink, schema, compression="snappy", store_schema=False)


def _newest_first(files: list[LiveFile]) -> list[LiveFile]:
    """Return the files so that the first has all columns: a later version of ours adds some."""
    return sorted(files, key=lambda file: file.modified, reverse=True)


def _entry(
    state: TableState, small: list[LiveFile], made: LiveFile, facts: Mapping[str, Any]
) -> str:
    change = Change(marked=(), removed=small, added=[made], moves=True)
    origin = Origin(
        read_version=state.version,
        millis=made.modified,
        metadata="",
        transaction=str(uuid4()),
        counts=combined_counts(change),
        facts=facts,
    )
    return entry(change, origin)
