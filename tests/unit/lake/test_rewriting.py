"""What the job does not rewrite itself: values and types that only Spark casts."""

from decimal import Decimal

import pyarrow as pa
import pytest

from cdc.events.schema import Column, TableSchema
from cdc.lake.alter.rewriting import Cast, Filled, Rehashed
from cdc.lake.commit.protocol import TakeMergeError
from cdc.tables import TableId, TableMode

DECIMAL = pa.decimal128(5, 2)
INSTANT = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("kind", "arrow", "text"),
    [
        ("timestamp", INSTANT, "2020-02-29 12:00:00+05:30"),
        ("timestamp", INSTANT, "2020-02-29 12:00:00"),
        ("timestamp", INSTANT, "infinity"),
        ("timestamp_ntz", pa.timestamp("us"), "0044-03-15 00:00:00 BC"),
        ("date", pa.date32(), "20200229"),
        ("date", pa.date32(), "10000-01-01"),
        ("double", pa.float64(), "0x1p3"),
        ("float", pa.float32(), "1e-3"),
        ("array<int>", pa.list_(pa.int32()), "{}"),
        ("decimal(5,2)", DECIMAL, "1.505"),
        ("decimal(5,2)", DECIMAL, "1000"),
        ("decimal(5,2)", DECIMAL, "NaN"),
        ("decimal(5,2)", DECIMAL, "about"),
        ("smallint", pa.int16(), "32768"),
        ("binary", pa.binary(), "\\\\000"),
    ],
)
def test_a_text_with_more_than_one_meaning_is_not_read(
    kind: str, arrow: pa.DataType, text: str
) -> None:
    rows = pa.table({"new": pa.nulls(2, arrow)})

    with pytest.raises(TakeMergeError):
        Filled(Column("new", kind), text).rows(rows)


@pytest.mark.parametrize(
    ("old", "new", "value"),
    [
        (pa.int32(), pa.float64(), 1),
        (pa.float64(), pa.string(), 1.0),
        (DECIMAL, pa.string(), Decimal(1)),
        (pa.int64(), pa.int32(), 2**31),
        (pa.float64(), DECIMAL, 0.5),
        (pa.timestamp("us"), INSTANT, 0),
        (pa.date32(), INSTANT, 0),
        (DECIMAL, pa.decimal128(5, 1), Decimal(1)),
        (DECIMAL, pa.decimal128(4, 2), Decimal(100)),
        (pa.list_(pa.int32()), pa.list_(pa.int64()), [1]),
    ],
    ids=str,
)
def test_a_type_that_arrow_may_cast_in_another_way_is_not_cast(
    old: pa.DataType, new: pa.DataType, value: object
) -> None:
    rows = pa.table({"v": pa.array([value], old)})

    with pytest.raises(TakeMergeError):
        Cast(Column("v", "any"), new).rows(rows)


def test_digests_of_floats_are_spark_s() -> None:
    schema = TableSchema(
        table=TableId("a", "t"), columns=(Column("d", "double"),), key=(), mode=TableMode.MULTISET
    )

    with pytest.raises(TakeMergeError, match="floats"):
        Rehashed(schema).rows(pa.table({"d": [0.0]}))
