"""The tables that batches are applied to: made once per size, and copied for each way."""

import os
import shutil
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from cdc.events.schema import Column, TableSchema
from cdc.lake.table import store
from cdc.lake.table.positions import Position
from cdc.tables import TableId

COLUMNS: Final = {
    "id": ("bigint", "id"),
    "revision": ("int", "cast(0 as int)"),
    "customer": ("bigint", "id * 7 % 100003"),
    "amount": ("decimal(12,2)", "cast(id * 31 % 100000 as decimal(12,2))"),
    "weight": ("double", "id / 8D"),
    "name": ("string", "concat('name ', lpad(hex(id * 2654435761 % 4294967296), 8, '0'))"),
    "note": ("string", "concat('note ', id, ' of revision 0')"),
    "at": ("timestamp", "timestamp_micros(id * 1000000)"),
}
SCHEMA: Final = TableSchema(
    table=TableId("bench", "rows"),
    columns=tuple(Column(name, kind) for name, (kind, _) in COLUMNS.items()),
    key=("id",),
)
POSITION: Final = Position(epoch=1, offset=0, rows_applied=1)
ROWS_PER_FILE: Final = 1_500_000
OURS: Final = "ours"
PLAIN: Final = "plain"


def make(spark: SparkSession, folder: Path, rows: int, kind: str) -> Path:
    """Return a table of so many rows; it is made if it is not there.

    A table of the kind ``OURS`` is what the job makes; a ``PLAIN`` one has none of Delta's
    features, as most tables of tutorials.
    """
    path = folder / f"{kind}-{rows}"
    if path.exists():
        return path
    partial = folder / f"{kind}-{rows}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    files = max(1, rows // ROWS_PER_FILE)
    made = spark.range(0, rows, 1, files).selectExpr(
        *(f"{text} as `{name}`" for name, (_, text) in COLUMNS.items()), "0L as _cdc_offset"
    )
    if kind == OURS:
        store.create(spark, str(partial), SCHEMA, POSITION)
        store.append(str(partial), made, POSITION)
    else:
        made.write.format("delta").save(str(partial))
    partial.rename(path)
    return path


def copy(table: Path, place: Path) -> Path:
    """Copy a table; its data files, which never change, are shared."""
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(table, place, copy_function=_link_data)
    return place


def _link_data(source: str, target: str) -> None:
    if source.endswith(".parquet") and "_delta_log" not in source:
        os.link(source, target)
    else:
        shutil.copy2(source, target)
