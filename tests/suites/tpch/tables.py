"""Make TPC-H's tables, which its refresh functions change from cut to cut.

RF1 inserts orders with their items, and RF2 deletes some. TPC-H changes no other table; here rows
of all large tables are updated as well.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

TABLES: Final = (
    "region",
    "nation",
    "supplier",
    "customer",
    "part",
    "partsupp",
    "orders",
    "lineitem",
)
_REFRESHED: Final = 0.01
"""The part of the orders that comes at a cut, and the part that goes."""
_UPDATED: Final[Mapping[str, str]] = {
    "supplier": "s_nationkey",
    "customer": "c_acctbal",
    "part": "p_brand",
    "partsupp": "ps_supplycost",
    "orders": "o_orderdate",
    "lineitem": "l_quantity",
}
"""The column of each table whose values are exchanged."""
Row = dict[str, Any]
World = Mapping[str, Sequence[Row]]


@cache
def tables(scale: float) -> Mapping[str, pa.Table]:
    """Return the tables as TPC-H's generator makes them."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    generator = shutil.which("tpchgen-cli", path=path)
    assert generator is not None, "tpchgen-cli is not installed: make install"
    with TemporaryDirectory() as folder:
        subprocess.run(
            [generator, "parquet", "-s", str(scale), "--output-dir", folder, "--quiet"],
            check=True,
        )
        return {name: _plain(pq.read_table(f"{folder}/{name}.parquet")) for name in TABLES}


def schemas(scale: float) -> Mapping[str, pa.Schema]:
    return {name: table.schema for name, table in tables(scale).items()}


def cuts(scale: float, seed: int, count: int) -> Iterator[World]:
    """Yield the rows at each cut; they are the same for the same arguments."""
    random, made = Random(seed), tables(scale)
    rows = {name: table.to_pylist() for name, table in made.items()}
    keys = [row["o_orderkey"] for row in rows["orders"]]
    size = max(1, int(len(keys) * _REFRESHED))
    there = set(keys[size * (count - 1) :])
    for cut in range(count):
        if cut:
            there |= set(keys[size * (cut - 1) : size * cut])  # RF1
            there -= set(keys[-size * cut : len(keys) - size * (cut - 1)])  # RF2
            for name, column in _UPDATED.items():
                _exchange(random, rows[name], column)
        yield {
            **rows,
            "orders": [row for row in rows["orders"] if row["o_orderkey"] in there],
            "lineitem": [row for row in rows["lineitem"] if row["l_orderkey"] in there],
        }


def _exchange(random: Random, rows: list[Row], column: str) -> None:
    """Put a value of another row into some rows that are near each other, in rows of their own."""
    first, many = random.randrange(len(rows)), max(1, len(rows) // 500)
    for number in range(first, min(first + many, len(rows))):
        value = random.choice(rows)[column]
        changed = value + 1 if isinstance(value, Decimal) else value
        rows[number] = {**rows[number], column: changed}


def _plain(table: pa.Table) -> pa.Table:
    """Return the table with texts of the type that the lake has."""
    fields = [
        field.with_type(pa.string()) if field.type == pa.string_view() else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))
