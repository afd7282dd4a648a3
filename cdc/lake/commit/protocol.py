"""Decides whether this writer may commit to a table, by what the job's own tables are like.

Everything that is not on the lists is refused, also what Delta will have tomorrow: a feature that
this writer does not know may ask of it what it does not do. Spark, which knows them all, then
merges.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cdc.lake.commit.table_metadata import Metadata, Protocol, StoredColumn

WITH_FEATURES: Final = (3, 7)
"""The versions, for readers and writers, that list features."""
PLAIN: Final = (1, 2)
"""The versions, for readers and writers, that ask nothing of who does not change rows."""
_NEEDED: Final = frozenset({"deletionVectors", "columnMapping"})
READER_FEATURES: Final = _NEEDED | {"timestampNtz"}
WRITER_FEATURES: Final = READER_FEATURES | {"appendOnly", "invariants"}
"""The last two ask nothing of a writer unless a property or a column uses them."""
PLAIN_FEATURES: Final = WRITER_FEATURES - _NEEDED
"""The features that ask no more of who does not change rows."""
_SET: Final = {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"}
PROPERTIES: Final = frozenset(
    {
        *_SET,
        "delta.columnMapping.maxColumnId",
        "delta.checkpointInterval",
        "delta.logRetentionDuration",
        "delta.deletedFileRetentionDuration",
        "delta.enableExpiredLogCleanup",
    }
)
_COLUMN: Final = frozenset(
    {"delta.columnMapping.id", "delta.columnMapping.physicalName", "comment"}
)
SCALARS: Final = frozenset(
    {
        "boolean",
        "byte",
        "short",
        "integer",
        "long",
        "float",
        "double",
        "string",
        "binary",
        "date",
        "timestamp",
        "timestamp_ntz",
    }
)
DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")
"""Delta's name of a decimal type: its digits, and those of them behind the point."""


class TakeMergeError(Exception):
    """Says why this writer must not or cannot make a commit that a MERGE by Spark can make."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        """What is in the way, by name: for ``status``."""


def refusal(protocol: Protocol, metadata: Metadata) -> str | None:
    """Return why this writer may not commit to the table, or None if it may."""
    return next(_reasons(protocol, metadata), None)


def _reasons(protocol: Protocol, metadata: Metadata) -> Iterator[str]:
    yield from _of_protocol(protocol)
    yield from _of_properties(metadata.properties)
    if metadata.partitioned_by:
        yield f"it is partitioned by {', '.join(metadata.partitioned_by)}"
    if metadata.provider != "parquet":
        yield f"its files are {metadata.provider}"
    for column in metadata.columns:
        yield from _of_column(column)


def _of_protocol(protocol: Protocol) -> Iterator[str]:
    if (protocol.reader, protocol.writer) != WITH_FEATURES:
        yield f"its protocol is {protocol.reader}/{protocol.writer}"
    for name in sorted(protocol.reader_features - READER_FEATURES):
        yield f"it has the reader feature {name}"
    for name in sorted(protocol.writer_features - WRITER_FEATURES):
        yield f"it has the writer feature {name}"
    for name in sorted(_NEEDED - (protocol.reader_features & protocol.writer_features)):
        yield f"it lacks the feature {name}"


def _of_properties(properties: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(properties):
        if name.startswith("delta.") and name not in PROPERTIES:
            yield f"it has the property {name}"
    for name, value in _SET.items():
        if properties.get(name) != value:
            yield f"its property {name} is not {value}"


def _of_column(column: StoredColumn) -> Iterator[str]:
    for name in sorted(column.metadata.keys() - _COLUMN):
        yield f"column {column.name} has {name}"
    for name in sorted(_COLUMN - {"comment"} - column.metadata.keys()):
        yield f"column {column.name} lacks {name}"
    if not column.nullable:
        yield f"column {column.name} is NOT NULL"
    if not _is_known(column.type):
        yield f"column {column.name} is of another type"


def _is_known(of: str | Mapping[str, Any]) -> bool:
    """Return whether the type is a scalar or an array of scalars."""
    if isinstance(of, str):
        return of in SCALARS or DECIMAL.fullmatch(of) is not None
    element = of.get("elementType")
    return of.get("type") == "array" and isinstance(element, str) and _is_known(element)
