"""Appends a few rows to a plain Delta table from this process: one data file and one log entry.

The log is such a table: without column mapping and deletion vectors, so that every reader opens it.
Its entries say what Spark's say for an append, and for an OPTIMIZE where small files become one.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import structlog

from cdc.lake.commit.log_entry import ENGINE, Change, Origin, added, combined_counts, entry
from cdc.lake.commit.plain_combined import combine_plain, plain_name, plain_writer
from cdc.lake.commit.protocol import PLAIN, PROPERTIES, TakeMergeError
from cdc.lake.commit.put import put_entry
from cdc.lake.commit.replay import LiveFile, TableState
from cdc.lake.commit.snapshot import LogReader
from cdc.lake.commit.statistics import statistics
from cdc.lake.commit.table_metadata import Metadata, Protocol
from cdc.lake.files.store_of import store_of
from cdc.lake.table.checkpoint import write_checkpoint

logger = structlog.get_logger(__name__)
MEASURED: Final = "delta.dataSkippingNumIndexedCols"
"""Of a Delta table: how many of its columns, from the first, have statistics."""


class Appender:
    """Appends to the table at ``path``; used by one thread at a time.

    ``types`` are Delta's types of the table's columns by name, in order; ``clock`` gives seconds
    since 1970.
    """

    def __init__(
        self, path: str, types: Mapping[str, Any], clock: Callable[[], float] = time.time
    ) -> None:
        self._path = path
        self._types = dict(types)
        self._clock = clock
        self._store = store_of(path)
        self._log = LogReader(path)

    def append(self, rows: pa.Table, metadata: str) -> int:
        """Append rows in one commit with this metadata, and return its version.

        Nothing of it is in the table if it raises: TakeMergeError if Spark has to append,
        CONFLICT if another commit came first, CHAIN_BROKEN if the log cannot be read, or OSError.
        """
        state, found = self._newest()
        file = self._write(rows, found)
        return self._put(state, found, _entry(file, metadata, state.version))

    def files(self) -> list[LiveFile]:
        """Return the files of the newest version; raises as ``append`` does."""
        state, _ = self._newest()
        return list(state.files.values())

    def combining(self, files: Sequence[LiveFile]) -> Callable[[], LiveFile]:
        """Return the work of making one file of several, for any thread to do.

        The work writes the new file, and raises CombineError; ``take_place`` puts the file into
        the table. Raises as ``append`` does.
        """
        _, found = self._newest()
        measured = _measured(found, list(self._types))
        millis = int(self._clock() * 1000)
        return partial(combine_plain, self._store, files, measured, millis)

    def take_place(self, sources: Sequence[LiveFile], file: LiveFile, metadata: str) -> int | None:
        """Put a combined file in the place of its sources, and return the commit's version.

        Returns None, without a commit, if one of the sources has left the table, or the file is
        gone: a VACUUM deletes what is in no version. Raises as ``append`` does.
        """
        state, found = self._newest()
        are_live = all(source.path in state.files for source in sources)
        if not are_live or self._store.size(file.path) != file.size:
            return None
        change = Change(marked=(), removed=sources, added=[file], moves=True)
        origin = Origin(
            read_version=state.version,
            millis=int(self._clock() * 1000),
            metadata=metadata,
            transaction=str(uuid4()),
            counts=combined_counts(change),
        )
        return self._put(state, found, entry(change, origin))

    def _newest(self) -> tuple[TableState, Metadata]:
        state = self._log.newest()
        protocol, metadata = state.described()
        if reason := _of_protocol(protocol) or _of_metadata(metadata, self._types):
            raise TakeMergeError(reason)
        return state, metadata

    def _put(self, state: TableState, found: Metadata, text: str) -> int:
        self._store.settle()
        self._log.refuse_changed()
        version = state.version + 1
        put_entry(self._store, version, text)
        if version % found.checkpoint_interval == 0:
            write_checkpoint(self._path, version)
        return version

    def _write(self, rows: pa.Table, metadata: Metadata) -> LiveFile:
        if rows.column_names != list(self._types):
            raise ValueError(f"rows of a table have other columns than it: {rows.column_names}")
        measured = _measured(metadata, rows.column_names)
        content = _parquet(rows, measured)
        file = LiveFile(
            path=plain_name(),
            size=len(content),
            modified=int(self._clock() * 1000),
            stats=statistics(rows, measured),
        )
        self._store.write(file.path, content)
        return file


def _of_protocol(protocol: Protocol) -> str | None:
    if (protocol.reader, protocol.writer) != PLAIN:
        return f"its protocol is {protocol.reader}/{protocol.writer}"
    return None


def _of_metadata(metadata: Metadata, types: Mapping[str, Any]) -> str | None:
    allowed = {MEASURED, *PROPERTIES}
    for name in sorted(metadata.properties):
        if name.startswith("delta.") and name not in allowed:
            return f"it has the property {name}"
    if not metadata.properties.get(MEASURED, "").isdecimal():
        return f"its property {MEASURED} is not a number"
    if metadata.partitioned_by or metadata.provider != "parquet":
        return "it is partitioned, or its files are not Parquet"
    if [(column.name, column.type) for column in metadata.columns] != list(types.items()):
        return "its columns are others"
    if any(column.metadata or not column.nullable for column in metadata.columns):
        return "its columns ask something of who writes them"
    return None


def _measured(metadata: Metadata, columns: list[str]) -> list[str]:
    return columns[: int(metadata.properties[MEASURED])]


def _parquet(rows: pa.Table, measured: list[str]) -> bytes:
    sink = pa.BufferOutputStream()
    with plain_writer(sink, rows.schema, measured) as writer:
        writer.write_table(rows)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _entry(file: LiveFile, metadata: str, read_version: int) -> str:
    counts = {
        "numFiles": 1,
        "numOutputRows": file.records,
        "numOutputBytes": file.size,
    }
    info = {
        "timestamp": file.modified,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": "[]"},
        "readVersion": read_version,
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "operationMetrics": {name: str(count) for name, count in counts.items()},
        "userMetadata": metadata,
        "engineInfo": ENGINE,
        "txnId": str(uuid4()),
    }
    actions = ({"commitInfo": info}, {"add": added(file)})
    return "".join(f"{json.dumps(a, ensure_ascii=False)}\n" for a in actions)
