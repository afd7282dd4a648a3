"""Statistics hold for every value, and are written as Spark writes them."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.lake.commit.statistics import PREFIX, statistics

LAST = "\U0010ffff"
MICROS = pa.timestamp("us")
INSTANT = pa.timestamp("us", tz="UTC")


def of(values: list[Any], type_: pa.DataType) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        statistics(pa.table({"c": pa.array(values, type_)}), ["c"]), parse_float=Decimal
    )
    return found


@pytest.mark.parametrize(
    ("values", "type_", "low", "high"),
    [
        ([3, None, -1], pa.int32(), -1, 3),
        ([2**63 - 1, -(2**63)], pa.int64(), -(2**63), 2**63 - 1),
        (["b", "a"], pa.string(), "a", "b"),
        (["x" * 32], pa.string(), "x" * 32, "x" * 32),
        (["ä" * 33], pa.string(), "ä" * 32, "ä" * 32 + LAST),
        (["x" * 32 + LAST + "x"], pa.string(), "x" * 32, "x" * 32 + LAST + "x"),
        (['"\n\x00'], pa.string(), '"\n\x00', '"\n\x00'),
        (["\ue000", "\U00010000"], pa.string(), "\ue000", "\U00010000"),
        ([date(1, 1, 1), date(9999, 12, 31)], pa.date32(), "0001-01-01", "9999-12-31"),
        (
            [Decimal("1.10"), Decimal("-0.05")],
            pa.decimal128(5, 2),
            Decimal("-0.05"),
            Decimal("1.1"),
        ),
        (
            [datetime(2020, 1, 1, 0, 0, 0, 123456, UTC)],
            INSTANT,
            "2020-01-01T00:00:00.123Z",
            "2020-01-01T00:00:00.124Z",
        ),
        (
            [datetime(1582, 10, 4, 0, 0, 0, 5000)],  # noqa: DTZ001 - a local time
            MICROS,
            "1582-10-04T00:00:00.005",
            "1582-10-04T00:00:00.005",
        ),
        ([1.5, -2.25], pa.float64(), Decimal("-2.25"), Decimal("1.5")),
    ],
)
def test_smallest_and_largest(
    values: list[Any], type_: pa.DataType, low: object, high: object
) -> None:
    found = of(values, type_)

    assert (found["minValues"], found["maxValues"]) == ({"c": low}, {"c": high})
    assert found["numRecords"] == len(values)
    assert found["nullCount"] == {"c": values.count(None)}
    assert found["tightBounds"] is True


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ([None, None], pa.int32()),
        ([], pa.int32()),
        ([True], pa.bool_()),
        ([b"x"], pa.binary()),
        ([["x"]], pa.list_(pa.string())),
        ([1.0, float("nan")], pa.float64()),
        ([1.0, float("inf")], pa.float64()),
        ([datetime(9999, 12, 31, 23, 59, 59, 999999)], MICROS),  # noqa: DTZ001 - a local time
    ],
)
def test_no_bounds_are_better_than_doubtful_ones(values: list[Any], type_: pa.DataType) -> None:
    found = of(values, type_)

    assert (found["minValues"], found["maxValues"]) == ({}, {})
    assert found["nullCount"] == {"c": values.count(None)}


def test_a_decimal_is_written_to_its_last_digit() -> None:
    value = Decimal("12345678901234567890123456.0123456789")

    assert of([value], pa.decimal128(38, 10))["minValues"] == {"c": value}


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), min_size=1))
def test_bounds_of_strings_hold_in_the_order_of_bytes(texts: list[str]) -> None:
    found = of(texts, pa.string())
    low, high = found["minValues"]["c"].encode(), found["maxValues"]["c"].encode()

    assert all(low <= text.encode() <= high for text in texts)
    assert len(found["minValues"]["c"]) <= PREFIX


@given(st.lists(st.datetimes(), min_size=1, max_size=5))
def test_bounds_of_times_hold(times: list[datetime]) -> None:
    found = of(times, MICROS)
    if found["maxValues"]:
        assert datetime.fromisoformat(found["minValues"]["c"]) <= min(times)
        assert datetime.fromisoformat(found["maxValues"]["c"]) >= max(times)


def test_only_the_measured_columns_have_statistics() -> None:
    table = pa.table({"a": [1], "b": [2]})

    assert json.loads(statistics(table, ["b"]))["maxValues"] == {"b": 2}
    assert json.loads(statistics(table, []))["numRecords"] == 1
