"""Equal keys have one form and one code, whatever they come from; different keys never do."""

import itertools
import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from cdc.lake.key_index.codes import KeyCoder
from cdc.lake.key_index.data_file import DataFile
from cdc.lake.key_index.digest import LONGEST, Digests
from cdc.lake.key_index.key_columns import KeyColumn
from cdc.lake.key_index.key_index import KeyIndex
from cdc.lake.key_index.places import LiveFile
from cdc.lake.key_index.refused import IndexRefusedError
from tests.unit.lake.key_index.lake_table import as_list, key_of

SECRET = bytes(range(32))


def codes(types: Sequence[str], *columns: pa.Array) -> list[tuple[int, int]]:
    """Return the digests; a key of one integer gets a second column, so that it has them too."""
    coded = KeyCoder(key_of(*types), SECRET).codes(columns)
    assert coded.second is not None
    return list(zip(coded.first.tolist(), coded.second.tolist(), strict=True))


def same(kind: str, one: pa.Array, other: pa.Array) -> bool:
    fill = pa.array([b"x"] * len(one), pa.binary())
    return codes((kind, "binary"), one, fill) == codes((kind, "binary"), other, fill)


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("bigint", pa.array([-3], pa.int16()), pa.array([-3], pa.int64())),
        ("int", pa.array([7], pa.int8()), pa.array([7], pa.int32())),
        ("double", pa.array([1.5], pa.float32()), pa.array([1.5], pa.float64())),
        ("double", pa.array([0.0]), pa.array([-0.0])),
        ("float", pa.array([0.0], pa.float32()), pa.array([-0.0], pa.float32())),
        ("double", pa.array([np.nan]), pa.array([math.copysign(math.nan, -1)])),
        ("string", pa.array(["ß"]), pa.array(["ß"], pa.large_string())),
        ("string", pa.array(["ß"]), pa.array(["ß"]).dictionary_encode()),
        ("binary", pa.array([b"\0"]), pa.array([b"\0"], pa.large_binary())),
        (
            "decimal(7,3)",
            pa.array([Decimal("1.50")], pa.decimal128(5, 2)),
            pa.array([Decimal("1.500")], pa.decimal128(7, 3)),
        ),
        (
            "timestamp",
            pa.array([datetime(9000, 1, 1, tzinfo=UTC)], pa.timestamp("us", "UTC")),
            pa.array([datetime(9000, 1, 1, tzinfo=UTC)], pa.timestamp("us", "Europe/Berlin")),
        ),
        (
            "timestamp",
            pa.array([datetime(1970, 1, 2, tzinfo=UTC)], pa.timestamp("us", "UTC")),
            pa.array([86_400_000_000_000], pa.timestamp("ns")),
        ),
    ],
)
def test_one_value_in_two_types_has_one_code(kind: str, one: pa.Array, other: pa.Array) -> None:
    assert same(kind, one, other)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("bigint", pa.array(["1"])),
        ("string", pa.array([1])),
        ("string", pa.array([b"1"], pa.binary())),
        ("binary", pa.array(["1"])),
        ("boolean", pa.array([1])),
        ("int", pa.array([1], pa.uint32())),
        ("float", pa.array([1.0], pa.float64())),
        ("double", pa.array([1])),
        ("date", pa.array([1])),
        ("date", pa.array([1], pa.timestamp("us"))),
        ("timestamp_ntz", pa.array([1], pa.timestamp("us", "UTC"))),
        ("decimal(5,2)", pa.array([1])),
        ("decimal(5,2)", pa.array([1.0])),
    ],
)
def test_a_value_of_another_kind_is_refused(kind: str, values: pa.Array) -> None:
    with pytest.raises(IndexRefusedError, match=r"k0 of the key has values of"):
        KeyCoder(key_of(kind), SECRET).codes([values])


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("decimal(5,2)", pa.array([Decimal("1.505")], pa.decimal128(7, 3))),
        ("decimal(5,2)", pa.array([Decimal("1000.00")], pa.decimal128(7, 2))),
        ("timestamp_ntz", pa.array([1], pa.timestamp("ns"))),
    ],
)
def test_a_value_that_would_be_rounded_is_refused(kind: str, values: pa.Array) -> None:
    with pytest.raises(IndexRefusedError, match=r"k0 of the key has a value beyond"):
        KeyCoder(key_of(kind), SECRET).codes([values])


def test_no_two_short_keys_of_several_texts_have_one_code() -> None:
    """Texts that only a length, a column or a zero byte tells apart."""
    parts = ["", "a", "\0", "a\0", "\0a", "aa", "aaaa", "aaaa\0", "aaaaa", "aaaa\0\0\0\0"]
    keys = list(itertools.product(parts, repeat=3))
    columns = [pa.array(column) for column in zip(*keys, strict=True)]

    assert len(set(codes(("string",) * 3, *columns))) == len(keys)


def test_no_two_values_of_any_other_type_have_one_code() -> None:
    numbers = [*range(-300, 300), *(2**power for power in range(9, 63)), -(2**63), 2**63 - 1]
    fill = pa.array([True] * len(numbers))
    for kind, values in (
        ("bigint", pa.array(numbers)),
        ("timestamp", pa.array(numbers, pa.timestamp("us", "UTC"))),
        ("decimal(38,9)", pa.array([Decimal(number) for number in numbers], pa.decimal128(38, 9))),
    ):
        assert len(set(codes((kind, "boolean"), values, fill))) == len(numbers)
    days = pa.array([date.fromordinal(day) for day in range(1, 3000)])
    assert len(set(codes(("date",), days))) == len(days)
    assert len(set(codes(("boolean",), pa.array([True, False])))) == 2
    halves = pa.array([number / 64 for number in numbers if abs(number) < 2**40])
    assert len(set(codes(("double",), halves))) == len(halves)


def test_long_values_differ_by_every_byte_and_by_length() -> None:
    texts = {
        bytes([0] * place + [1] + [0] * (length - place - 1))
        for length in (LONGEST - 1, LONGEST, LONGEST + 1, LONGEST + 4, 3000)
        for place in (0, 3, 31, 32, 250, length - 1)
        if place < length
    }
    values = pa.array(sorted(texts) + [bytes(length) for length in range(250, 300)])

    assert len(set(codes(("binary",), values))) == len(values)


def test_the_code_does_not_depend_on_neighbours_slices_or_blocks() -> None:
    texts = ["x" * (number % 300) + str(number) for number in range(20_000)]
    whole = codes(("string",), pa.array(texts))
    slices = codes(("string",), pa.array(["left", *texts, "right"]).slice(1, len(texts)))

    assert slices == whole
    for number in (0, 299, 8191, 8192, 19_999):
        assert codes(("string",), pa.array([texts[number]])) == [whole[number]]
    days = pa.array(range(20_000), pa.int32()).cast(pa.date32())
    assert codes(("date",), days.slice(9_000)) == codes(("date",), days)[9_000:]
    flags = pa.array([True, False, False, True])
    assert codes(("boolean",), flags.slice(1)) == codes(("boolean",), flags)[1:]


def test_each_of_the_four_parts_of_a_digest_tells_keys_apart_by_factors_of_its_own() -> None:
    values = pa.array([number.to_bytes(4, "big") for number in range(2000)], pa.large_binary())
    halves = Digests(SECRET, 1).of([values])
    parts = [
        part for half in halves for part in (half >> np.uint64(32), half & np.uint64(2**32 - 1))
    ]

    assert [len(set(part.tolist())) for part in parts] == [2000] * 4
    assert len({tuple(part.tolist()) for part in parts}) == 4


def test_another_secret_gives_other_codes_and_another_meaning() -> None:
    key, values = key_of("string"), [pa.array(["a"])]
    one, other = KeyCoder(key, SECRET), KeyCoder(key, bytes(32))

    assert one.codes(values).first[0] != other.codes(values).first[0]
    assert one.meaning != other.meaning
    assert one.meaning == KeyCoder(key, SECRET).meaning
    assert one.meaning != KeyCoder(key_of("binary"), SECRET).meaning


def test_int96_and_dictionary_pages_of_a_file_are_read_like_any(tmp_path: Path) -> None:
    times = [datetime(1, 1, 1), datetime(2400, 5, 6, 7, 8, 9, 123456), datetime(9999, 12, 31)]  # noqa: DTZ001
    rows = pa.table(
        {
            "t": pa.array(times, pa.timestamp("us", "UTC")),
            "s": pa.array(["a", "b", "a"]).dictionary_encode(),
        }
    )
    pq.write_table(rows, tmp_path / "f", use_deprecated_int96_timestamps=True)
    key = (KeyColumn("t", "t", "timestamp"), KeyColumn("s", "s", "string"))
    index = KeyIndex(
        key=key,
        table=fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem()),
        directory=tmp_path / "index",
        memory_bytes=0,
    )
    asked = rows.set_column(1, "s", pa.array(["a", "b", "b"]))
    live = [LiveFile(DataFile("f", (tmp_path / "f").stat().st_size, 3))]

    places = index.look_up(asked, live)
    index.confirm(asked, places)
    assert as_list(places) == [("f", 0), ("f", 1), None]
