"""Spark, delta-rs and DuckDB read the same rows of a derived table, at every cut that is kept."""

import re
from contextlib import closing
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cdc.derive.step import upkeep
from cdc.lake.records.derived_entry import DerivedEntry
from tests.duckdb_reader import duckdb_with_delta
from tests.unit.derive.small_lake import SmallLake, defined, rows_of

pytestmark = pytest.mark.spark

EVENTS: Final = pa.schema(
    [
        ("id", pa.int64()),
        ("small", pa.int16()),
        ("flag", pa.bool_()),
        ("price", pa.decimal128(12, 2)),
        ("ratio", pa.float64()),
        ("text", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("raw", pa.binary()),
        ("tags", pa.list_(pa.string())),
    ]
)
COPIED: Final = defined(
    "copied",
    'SELECT id, small, flag, price, ratio, text, day, "at", local, raw, tags FROM "shop"."events"',
    "shop.events",
    key=("id",),
)
SUMMED: Final = defined(
    "summed",
    'SELECT flag, sum(id) AS ids, sum(price) AS "a price, summed" FROM "shop"."events" '
    "GROUP BY flag",
    "shop.events",
    key=("flag",),
)


def event(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "small": -number,
        "flag": None if number % 3 == 0 else number % 2 == 0,
        "price": Decimal(number) / 100,
        "ratio": float("nan") if number == 1 else number / 3,
        "text": "" if number % 4 == 0 else f"ä\U0001f600{number}",
        "day": date(1, 1, 1 + number),
        "at": datetime(1582, 10, 4, 1, 2, 3, number, UTC),
        "local": datetime(1969, 12, 31, 23, 59, 59, number),  # noqa: DTZ001 - of no zone
        "raw": bytes([number, 0, 255]),
        "tags": None if number % 5 == 0 else ["", None, str(number)],
    }


def by_spark(spark: SparkSession, entry: DerivedEntry) -> list[tuple[Any, ...]]:
    frame = spark.read.format("delta").option("versionAsOf", entry.version).load(entry.path)
    names = [name for name in frame.columns if not name.startswith("_cdc_")]
    rows = frame.select([f"`{name}`" for name in names]).toArrow().to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=repr)


def by_duckdb(entry: DerivedEntry) -> list[tuple[Any, ...]]:
    """Return the rows of the newest version, which DuckDB reads without delta-rs."""
    query = f"SELECT * EXCLUDE (_cdc_row_hash, _cdc_copy) FROM delta_scan('{entry.path}')"
    rows = duckdb_with_delta().execute(query).to_arrow_table().to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=repr)


def _log(entry: DerivedEntry) -> str:
    """Return the text of all entries of the table's log."""
    return "".join(file.read_text() for file in Path(entry.path).glob("_delta_log/*.json"))


def test_all_readers_agree_at_every_cut(spark: SparkSession, tmp_path: Path) -> None:
    lake = SmallLake(tmp_path, {"events": EVENTS})
    cuts = []
    with closing(lake.keep(COPIED, SUMMED)) as kept:
        for first in (1, 3, 2):
            lake.set(events=[event(number) for number in range(first, first + 6)])
            cuts.append(kept.entries(lake.row()))

    for copied, summed in cuts:
        assert len(rows_of(copied)) == 6
        for entry in (copied, summed):
            assert repr(by_spark(spark, entry)) == repr(rows_of(entry))
    for entry in cuts[-1]:
        assert repr(by_duckdb(entry)) == repr(rows_of(entry))


def test_a_table_stays_small_and_readable_over_many_commits(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old files are deleted on the way."""
    monkeypatch.setattr(upkeep, "EVERY", 8)
    lake = SmallLake(tmp_path, {"events": EVENTS})
    with closing(lake.keep(COPIED, kept_hours=0)) as kept:
        for turn in range(12):
            lake.set(events=[event(number) for number in range(1 + turn % 7, 8 + turn % 5)])
            (entry,) = kept.entries(lake.row())

    there = {file.name for file in Path(entry.path).glob("*.parquet")}
    ever = set(re.findall(r'"path":"(part-[^"]*)"', _log(entry)))
    assert ever - there, "no file of an old version was deleted"
    assert len(there) < 8
    assert repr(by_spark(spark, entry)) == repr(rows_of(entry)) == repr(by_duckdb(entry))
