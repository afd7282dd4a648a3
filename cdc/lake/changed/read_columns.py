"""Decides whether columns can be read from a table's files alike over all versions between two."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from cdc.lake.changed.unknown import UnknownChangesError
from cdc.lake.commit.data_file import arrow_type
from cdc.lake.commit.protocol import READER_FEATURES
from cdc.lake.commit.table_metadata import PHYSICAL_NAME, Metadata, Protocol, StoredColumn

_LISTS_FEATURES: Final = 3  # the version of the protocol, for readers
_MAPPING: Final = "delta.columnMapping.mode"
_MAPPINGS: Final = frozenset({"none", "name"})


def stored_columns(
    described: Sequence[tuple[Protocol, Metadata]], names: Sequence[str]
) -> list[pa.Field]:
    """Return the columns as they are in data files, in the order of ``names``.

    ``described`` is what the log has said of the table, one after the other. Raises
    UnknownChangesError if they are not the same all the time, or are read in a way that is not
    known here.
    """
    for protocol, metadata in described:
        _refuse_unreadable(protocol, metadata)
    if len({metadata.action["id"] for _, metadata in described}) > 1:
        raise UnknownChangesError("the table was created anew")
    first, *others = [[_stored(metadata, name) for name in names] for _, metadata in described]
    if any(other != first for other in others):
        raise UnknownChangesError("a column that is used has changed")
    return first


def queried_schema(names: Sequence[str], stored: Sequence[pa.Field]) -> pa.Schema:
    """Return the schema that delta-rs gives the columns in a query."""
    pairs = zip(names, stored, strict=True)
    return pa.schema([pa.field(n, _queried(f.type), nullable=f.nullable) for n, f in pairs])


def _refuse_unreadable(protocol: Protocol, metadata: Metadata) -> None:
    if protocol.reader > _LISTS_FEATURES or protocol.reader_features - READER_FEATURES:
        raise UnknownChangesError("the table has a feature that is not known")
    if metadata.partitioned_by or metadata.provider != "parquet":
        raise UnknownChangesError("the table has partitions, or other files than Parquet")
    if metadata.properties.get(_MAPPING, "none") not in _MAPPINGS:
        raise UnknownChangesError("the table's columns are known by number")


def _stored(metadata: Metadata, name: str) -> pa.Field:
    column = next((column for column in metadata.columns if column.name == name), None)
    if column is None:
        raise UnknownChangesError(f"there is no column {name}")
    return pa.field(_physical(metadata, column), _type(column), nullable=column.nullable)


def _physical(metadata: Metadata, column: StoredColumn) -> str:
    mapped = metadata.properties.get(_MAPPING, "none") != "none"
    return str(column.metadata[PHYSICAL_NAME]) if mapped else column.name


def _type(column: StoredColumn) -> pa.DataType:
    try:
        return arrow_type(column.type)
    except KeyError:
        raise UnknownChangesError(f"column {column.name} is of a type not known") from None


def _queried(of: pa.DataType) -> pa.DataType:
    if pa.types.is_list(of):
        return pa.list_(of.value_field.with_type(_queried(of.value_type)))
    views = {pa.string(): pa.string_view(), pa.binary(): pa.binary_view()}
    return views.get(of, of)
