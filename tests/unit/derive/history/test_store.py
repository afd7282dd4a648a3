"""The versions of some keys are found in a history, whatever the type of the key is."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc.apply.local.arrow import arrow_type
from cdc.derive.engine.calculator import calculator
from cdc.derive.history.history import OWN
from cdc.derive.history_step.store import VersionStore
from cdc.events.schema import Column, TableSchema
from cdc.lake.table.plain_values import plain_values
from cdc.tables import TableId

NOON = datetime(2024, 3, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("int", [1, -2, 3]),
        ("string", ["a", "it's \\ \" $", ""]),
        ("date", [date(1970, 1, 2), date(2024, 2, 29), date(1969, 12, 31)]),
        ("timestamp", [NOON, NOON.replace(year=1960), NOON.replace(microsecond=1)]),
        (
            "timestamp_ntz",
            [NOON.replace(tzinfo=None, year=year) for year in (2024, 1960, 2025)],
        ),
        ("decimal(10,2)", [Decimal("1.10"), Decimal("-1.10"), Decimal("0.00")]),
        ("binary", [b"\x00", b"\xff'", b""]),
    ],
)
def test_rows_of_keys(tmp_path: Path, kind: str, values: list[Any]) -> None:
    schema = TableSchema(
        table=TableId("shop", "t"),
        columns=(Column("k", kind), Column("v", "string")),
        key=("k",),
    )
    own = {name: [None] * 3 for name in OWN} | {"_from_lsn": [7, 8, 9], "_epoch": [1] * 3}
    types = {"BIGINT": pa.int64(), "VARCHAR": pa.string()}
    fields = {name: types.get(kind, pa.timestamp("us", "UTC")) for name, kind in OWN.items()}
    stored = {
        "k": pa.array(values, arrow_type(kind)),
        "v": pa.array(["x", "y", "z"]),
        **{name: pa.array(own[name], field) for name, field in fields.items()},
        "_cdc_row_hash": pa.array(["1", "2", "3"]),
        "_cdc_copy": pa.array([1, 1, 1]),
    }
    write_deltalake(str(tmp_path), pa.table(stored))
    first, second, third = ((key,) for key in plain_values(stored["k"]))
    with calculator(64) as database:
        store = VersionStore(database=database, schema=schema, stored=DeltaTable(str(tmp_path)))

        assert {k: row[1] for k, row in store.rows([second]).items()} == {second: "y"}
        assert {k: row[1] for k, row in store.rows([first, third]).items()} == {
            first: "x",
            third: "z",
        }
        assert database.count("wal2lake_versions") == 3
