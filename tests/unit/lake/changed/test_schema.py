"""The rows that differ have the schema that a query of the table has."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from cdc.derive.engine.inputs import rows as queried
from cdc.lake.commit.data_file import arrow_schema
from tests.unit.lake.changed.two_versions import differ
from tests.unit.lake.commit.combining import delete
from tests.unit.lake.commit.small_table import COLUMNS, actions, add, append_entry, at, make

TYPES: Final[dict[str, Any]] = {
    "flag": "boolean",
    "small": "short",
    "int": "integer",
    "big": "long",
    "single": "float",
    "double": "double",
    "price": "decimal(10,2)",
    "amount": "decimal(38,10)",
    "text": "string",
    "bytes": "binary",
    "day": "date",
    "at": "timestamp",
    "local": "timestamp_ntz",
}
VALUES: Final[dict[str, Any]] = {
    "flag": True,
    "small": -1,
    "int": 2,
    "big": 2**62,
    "single": 0.5,
    "double": float("nan"),
    "price": Decimal("1.25"),
    "amount": Decimal("1234567890123456789012345678.0123456789"),
    "text": "ä\U0001f600",
    "bytes": b"\0\xff",
    "day": date(1, 1, 1),
    "at": datetime(1582, 10, 4, 1, 2, 3, 456789, UTC),
    "local": datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
}


def test_the_schema_is_that_of_a_query(tmp_path: Path) -> None:
    arrays = {
        f"{name}s": {"type": "array", "elementType": of, "containsNull": True}
        for name, of in TYPES.items()
    }
    committer = make(tmp_path, TYPES | arrays | {"none": "string"})
    listed = {f"{name}s": [value, None] for name, value in VALUES.items()}
    new = pa.Table.from_pylist([VALUES | listed], schema=arrow_schema(committer.open().metadata))
    committer.commit(new, {}, at(1))

    found = differ(tmp_path, 0, 1)

    query = queried(DeltaTable(str(tmp_path)), [*TYPES, *arrays, "none"])
    assert found.added.schema.equals(query.schema)
    assert found.removed.schema == found.added.schema
    assert pa.concat_tables([found.added, query.read_all()]).num_rows == 2


def test_the_schema_is_that_of_a_query_for_a_table_of_delta_rs(tmp_path: Path) -> None:
    """The files that its MERGE writes describe texts and bytes as views."""
    arrays = pa.list_(pa.field("element", pa.string()))
    types = {"id": pa.int64(), "text": pa.string(), "bytes": pa.binary(), "texts": arrays}
    fields = [pa.field(name, of, nullable=name != "id") for name, of in types.items()]
    new = pa.table([[1, 2], ["a", None], [b"a", None], [["a"], None]], schema=pa.schema(fields))
    write_deltalake(str(tmp_path), new)
    merger = DeltaTable(str(tmp_path)).merge(
        new.slice(1), "t.id = s.id", source_alias="s", target_alias="t"
    )
    merger.when_matched_update({"text": "'b'", "texts": "['b', NULL]"}).execute()

    found = differ(tmp_path, 0, 1)

    assert found.added.schema.equals(queried(DeltaTable(str(tmp_path)), list(types)).schema)
    (changed,) = (row for row in found.added.to_pylist() if row["id"] == 2)
    assert changed == {"id": 2, "text": "b", "bytes": None, "texts": ["b", None]}


def test_columns_come_in_the_order_in_which_they_are_asked_for(tmp_path: Path) -> None:
    add(make(tmp_path), [1])

    found = differ(tmp_path, 0, 1, ["_cdc_offset", "id"])

    assert found.added.column_names == ["_cdc_offset", "id"]


def test_a_column_that_is_younger_than_a_file_is_null(tmp_path: Path) -> None:
    committer = make(tmp_path)
    path = add(committer, [0, 1])
    later = make(
        tmp_path / "other",
        COLUMNS | {"new": "date"},
    )
    assert later.open().version == 0
    (metadata,) = (a for a in actions(tmp_path / "other", 0) if "metaData" in a)
    append_entry(tmp_path, 2, [{"commitInfo": {"operation": "ALTER"}}, metadata])
    delete(committer, path, 0)

    assert differ(tmp_path, 2, 3, ["id", "new"]).removed.to_pylist() == [{"id": 0, "new": None}]
