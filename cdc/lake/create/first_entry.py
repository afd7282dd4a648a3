"""Creates an empty table without Spark: its first log entry is its protocol and its columns.

What the entry says is what Spark's ``CREATE TABLE`` writes: for a table with deletion vectors and
column mapping by name, or for a plain one, such as the log.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from cdc.lake.commit.column_ids import LAST_ID, ColumnIds
from cdc.lake.commit.log_entry import ENGINE
from cdc.lake.commit.put import put_entry
from cdc.lake.files.store_of import store_of
from cdc.lake.table.entry_file import LOG

_FEATURES: Final = ("columnMapping", "deletionVectors")
_OF_WRITERS: Final = ("invariants", "appendOnly")
_NTZ: Final = '"timestamp_ntz"'  # in the JSON of a type


def create_table(
    path: str, fields: Sequence[Mapping[str, Any]], properties: Mapping[str, str], metadata: str
) -> None:
    """Create the empty table at ``path`` with ``metadata`` in its first commit.

    ``fields`` describe the columns as Delta does in a schema, without ids and physical names.
    Raises TakeMergeError if Spark has to create it, CONFLICT if there is a table.
    """
    protocol, mapped, named = marked_table(fields, properties)
    _put(path, mapped, named, protocol, metadata)


def marked_table(
    fields: Sequence[Mapping[str, Any]], properties: Mapping[str, str]
) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, str]]:
    """Return protocol, columns and properties of a table whose rows can be marked as deleted.

    Every column gets an id, and a name of its own in data files.
    """
    ids = ColumnIds()
    mapped = [ids.field(field) for field in fields]
    protocol = _features(timestamps_without_zone=_NTZ in json.dumps(fields))
    return protocol, mapped, {**properties, LAST_ID: str(ids.last)}


def described_table(
    fields: Sequence[Mapping[str, Any]], properties: Mapping[str, str], millis: int
) -> dict[str, Any]:
    """Return the ``metaData`` action of a new table; ``millis`` is now, since 1970."""
    return {
        "id": str(uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": list(fields)}),
        "partitionColumns": [],
        "configuration": dict(properties),
        "createdTime": millis,
    }


def create_plain_table(
    path: str, fields: Sequence[Mapping[str, Any]], properties: Mapping[str, str], metadata: str
) -> None:
    """Create the empty table like ``create_table``, readable without any table feature."""
    _put(path, fields, properties, {"minReaderVersion": 1, "minWriterVersion": 2}, metadata)


def _put(
    path: str,
    fields: Sequence[Mapping[str, Any]],
    properties: Mapping[str, str],
    protocol: Mapping[str, Any],
    metadata: str,
) -> None:
    store = store_of(path)
    store.make_folder(LOG)
    actions = _actions(fields, properties, protocol, metadata)
    lines = (json.dumps(action, ensure_ascii=False) for action in actions)
    put_entry(store, 0, "".join(f"{line}\n" for line in lines))
    store.settle()


def _features(*, timestamps_without_zone: bool) -> dict[str, Any]:
    features = [*_FEATURES, *(["timestampNtz"] if timestamps_without_zone else [])]
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": features,
        "writerFeatures": [*features, *_OF_WRITERS],
    }


def _actions(
    fields: Sequence[Mapping[str, Any]],
    properties: Mapping[str, str],
    protocol: Mapping[str, Any],
    metadata: str,
) -> Iterator[dict[str, Any]]:
    millis = time.time_ns() // 1_000_000
    yield {"commitInfo": _info(millis, metadata)}
    yield {"metaData": described_table(fields, properties, millis)}
    yield {"protocol": dict(protocol)}


def _info(millis: int, metadata: str) -> dict[str, Any]:
    return {
        "timestamp": millis,
        "operation": "CREATE TABLE",
        "operationParameters": {},
        "isolationLevel": "Serializable",
        "isBlindAppend": True,
        "operationMetrics": {},
        "userMetadata": metadata,
        "engineInfo": ENGINE,
        "txnId": str(uuid4()),
    }
