"""Appends a few rows to a plain Delta table from this process: one data file and one log entry.

The log is such a table: without column mapping and deletion vectors, so that every reader opens it.
Its entries say what Spark's say for an append.
"""

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import structlog

from cdc.lake.commit.checkpoint import write_checkpoint
from cdc.lake.commit.log_entry import ENGINE, added
from cdc.lake.commit.protocol import PROPERTIES, TakeMergeError
from cdc.lake.commit.put import put_entry
from cdc.lake.commit.replay import LiveFile, TableState
from cdc.lake.commit.snapshot import LogReader
from cdc.lake.commit.statistics import statistics
from cdc.lake.commit.table_metadata import Metadata, Protocol
from cdc.lake.files.store_of import store_of

logger = structlog.get_logger(__name__)
MEASURED: Final = "delta.dataSkippingNumIndexedCols"
"""Of a Delta table: how many of its columns, from the first, have statistics."""
_PLAIN: Final = (1, 2)  # versions of the protocol, for readers and writers


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
        state = self._log.newest()
        if (reason := self._refusal(state)) is not None:
            raise TakeMergeError(reason)
        assert state.metadata is not None  # noqa: S101 - a table without is refused
        file = self._write(rows, state.metadata)
        self._store.settle()
        self._log.refuse_changed()
        version = state.version + 1
        text = _entry(file, metadata, state.version)
        put_entry(self._store, version, text)
        if version % state.metadata.checkpoint_interval == 0:
            write_checkpoint(self._path, version)
        return version

    def _refusal(self, state: TableState) -> str | None:
        """Return why Spark has to append to the table; None if it need not."""
        if state.protocol is None or state.metadata is None:
            return "its log has no protocol or no metadata"
        return _of_protocol(state.protocol) or _of_metadata(state.metadata, self._types)

    def _write(self, rows: pa.Table, metadata: Metadata) -> LiveFile:
        if rows.column_names != list(self._types):
            raise ValueError(f"rows of a table have other columns than it: {rows.column_names}")
        measured = rows.column_names[: int(metadata.properties[MEASURED])]
        content = _parquet(rows, measured)
        file = LiveFile(
            path=f"part-00000-{uuid4()}-c000.snappy.parquet",
            size=len(content),
            modified=int(self._clock() * 1000),
            stats=statistics(rows, measured),
        )
        self._store.write(file.path, content)
        return file


def _of_protocol(protocol: Protocol) -> str | None:
    if (protocol.reader, protocol.writer) != _PLAIN:
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


def _parquet(rows: pa.Table, measured: list[str]) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(
        rows,
        sink,
        compression="snappy",
        use_dictionary=measured,
        write_statistics=measured,
        store_schema=False,  # Arrow's own description would only repeat it
    )
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
