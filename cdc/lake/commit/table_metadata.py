"""Holds what a table's log says of the whole table: protocol, columns, properties."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

FIELD_ID: Final = "delta.columnMapping.id"
PHYSICAL_NAME: Final = "delta.columnMapping.physicalName"
_INTERVAL: Final = "delta.checkpointInterval"
_USUAL_INTERVAL: Final = 10  # Delta's default


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """Says which protocol a table asks of its readers and writers."""

    reader: int
    writer: int
    reader_features: frozenset[str]
    writer_features: frozenset[str]

    @classmethod
    def parse(cls, action: Mapping[str, Any]) -> Self:
        """Read a ``protocol`` action."""
        return cls(
            reader=action["minReaderVersion"],
            writer=action["minWriterVersion"],
            reader_features=frozenset(action.get("readerFeatures") or ()),
            writer_features=frozenset(action.get("writerFeatures") or ()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredColumn:
    """Holds a column of the table, as the log describes it."""

    name: str
    type: str | Mapping[str, Any]  # Delta's name of a scalar type, or its description of another
    nullable: bool
    metadata: Mapping[str, Any]

    @property
    def physical(self) -> str:
        """Return the column's name in data files and statistics."""
        return str(self.metadata[PHYSICAL_NAME])

    @property
    def field_id(self) -> int:
        """Return the column's field id in data files."""
        return int(self.metadata[FIELD_ID])


@dataclass(frozen=True, slots=True, kw_only=True)
class Metadata:
    """Columns and properties of a table."""

    columns: tuple[StoredColumn, ...]
    partitioned_by: tuple[str, ...]
    provider: str  # format of the data files
    properties: Mapping[str, str]
    action: Mapping[str, Any] = field(compare=False, repr=False)  # as the log has it

    @classmethod
    def parse(cls, action: Mapping[str, Any]) -> Self:
        """Read a ``metaData`` action."""
        fields = json.loads(action["schemaString"])["fields"]
        # A checkpoint has a map as a list of pairs.
        return cls(
            columns=tuple(_column(field) for field in fields),
            partitioned_by=tuple(action.get("partitionColumns") or ()),
            provider=action["format"]["provider"],
            properties=dict(action.get("configuration") or ()),
            action=action,
        )

    def with_properties(self, changes: Mapping[str, str]) -> dict[str, Any]:
        """Return the ``metaData`` action of the same table with these properties changed."""
        said = {name: value for name, value in self.action.items() if value is not None}
        place = {**said["format"], "options": dict(said["format"].get("options") or ())}
        return {**said, "format": place, "configuration": {**self.properties, **changes}}

    @property
    def checkpoint_interval(self) -> int:
        """Return the number of commits from one checkpoint to the next."""
        return int(self.properties.get(_INTERVAL, _USUAL_INTERVAL))


def _column(field: Mapping[str, Any]) -> StoredColumn:
    return StoredColumn(
        name=field["name"],
        type=field["type"],
        nullable=field["nullable"],
        metadata=field.get("metadata") or {},
    )
