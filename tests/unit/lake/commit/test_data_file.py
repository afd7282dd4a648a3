"""A data file: physical names, field ids, types, and every value there and back."""

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc.lake.commit.data_file import arrow_schema, data_file, measured
from cdc.lake.commit.table_metadata import Metadata
from tests.unit.lake.commit.small_table import metadata_action

TYPES: dict[str, Any] = {
    "id": "integer",
    "flag": "boolean",
    "tiny": "byte",
    "small": "short",
    "large": "long",
    "single": "float",
    "double": "double",
    "text": "string",
    "bytes": "binary",
    "day": "date",
    "at": "timestamp",
    "local": "timestamp_ntz",
    "price": "decimal(10,2)",
    "amount": "decimal(38,10)",
    "tags": {"type": "array", "elementType": "string", "containsNull": True},
    "odd name, yes": "string",
    "_cdc_offset": "long",
}
ROW = {
    "id": -1,
    "flag": True,
    "tiny": -128,
    "small": -32768,
    "large": 2**63 - 1,
    "single": 1.5,
    "double": -0.0,
    "text": "ä\x00\n",
    "bytes": b"\x00\xff",
    "day": date(1, 1, 1),
    "at": datetime(1582, 10, 4, 1, 2, 3, 456789, UTC),
    "local": datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001 - a local time
    "price": Decimal("-0.01"),
    "amount": Decimal("12345678901234567890123456.0123456789"),
    "tags": ["a", None, ""],
    "odd name, yes": "",
    "_cdc_offset": 7,
}
METADATA = Metadata.parse(metadata_action(TYPES))
NULLS = dict.fromkeys(TYPES)
UUID_ = UUID("f9aef80a-1407-4718-8605-7046c00c0fdd")


def rows(*listed: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(listed), schema=arrow_schema(METADATA))


def test_every_value_comes_back() -> None:
    content, file = data_file(rows(ROW, NULLS), METADATA, UUID_, 5)
    found = pq.read_table(io.BytesIO(content))

    assert found.column_names == [f"c-{number}" for number in range(1, len(TYPES) + 1)]
    assert found.rename_columns(list(TYPES)).to_pylist() == [ROW, NULLS]
    assert (file.size, file.modified, file.vector) == (len(content), 5, None)
    assert file.records == 2
    assert str(UUID_) in file.path


def test_field_ids_and_types_are_those_that_spark_writes() -> None:
    content, _ = data_file(rows(ROW), METADATA, UUID_, 5)
    file = pq.ParquetFile(io.BytesIO(content))
    ids = [int(field.metadata[b"PARQUET:field_id"]) for field in file.schema_arrow]
    stored = {path.name: path for path in (file.schema.column(n) for n in range(len(TYPES)))}

    assert ids == list(range(1, len(TYPES) + 1))
    assert [stored[f"c-{n}"].physical_type for n in (3, 4, 13)] == ["INT32", "INT32", "INT64"]
    assert stored["element"].path == "c-15.list.element"
    assert "isAdjustedToUTC=true" in str(stored["c-11"].logical_type)
    assert "isAdjustedToUTC=false" in str(stored["c-12"].logical_type)


def test_statistics_are_of_key_and_offset() -> None:
    _, file = data_file(rows(ROW), METADATA, UUID_, 5)
    stats = json.loads(file.stats or "")

    assert stats["minValues"] == {"c-1": -1, "c-17": 7}
    assert [column.name for column in measured(METADATA)] == ["id", "_cdc_offset"]


def test_a_table_without_a_key_has_statistics_of_its_own_columns() -> None:
    columns = {"a": "long", "_cdc_offset": "long", "_cdc_row_hash": "string", "_cdc_copy": "long"}
    metadata = Metadata.parse(metadata_action(columns, {"wal2lake.key": "[]"}))

    assert [column.name for column in measured(metadata)] == list(columns)[1:]


@pytest.mark.parametrize(
    "wrong",
    [
        rows(ROW).rename_columns(["key", *list(TYPES)[1:]]),
        rows(ROW).drop_columns(["tags"]),
        rows(ROW).select([*list(TYPES)[1:], "id"]),
        rows(ROW).append_column("more", pa.array([1])),
        rows(ROW).set_column(0, "id", pa.array([1], pa.int64())),
        rows(ROW).set_column(10, "at", pa.array([datetime(2020, 1, 1)], pa.timestamp("us"))),  # noqa: DTZ001
    ],
)
def test_rows_of_another_shape_are_refused(wrong: pa.Table) -> None:
    with pytest.raises(ValueError, match="other columns"):
        data_file(wrong, METADATA, UUID_, 5)
