"""Deletion vectors: there and back, files that Spark wrote, and damage of every kind."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from cdc.lake.commit import z85
from cdc.lake.commit.deletion_vector import (
    DamagedVectorError,
    Vector,
    decode,
    encode,
    encode_file,
    merged,
    vector_file,
)

BY_SPARK = Path(__file__).resolve().parents[3] / "data" / "deletion_vectors"
UUID_ = UUID("f9aef80a-1407-4718-8605-7046c00c0fdd")
THREE = "f9aef80a-1407-4718-8605-7046c00c0fdd"
"""Written by a MERGE of Delta 4.4.0 over three files: multiples of 3 or 5 of 1,000 rows, and every
fifth of 83 and of 84."""
LARGE = "8b49e37d-594b-4e8f-b70b-cc1886aff49a"
"""Written by a DELETE: bitmaps and runs."""
ROWS = st.sets(
    st.integers(0, 2**40) | st.integers(0, 200) | st.integers(2**32 - 3, 2**32 + 3), max_size=40
)


def by_spark(name: str, offset: int, size: int, cardinality: int) -> Vector:
    place = z85.encode(UUID(name).bytes)
    return Vector(storage="u", place=place, offset=offset, size=size, cardinality=cardinality)


GOLDEN: list[tuple[Vector, set[int]]] = [
    (by_spark(THREE, 1, 966, 467), {n for n in range(1000) if n % 3 == 0 or n % 5 == 0}),
    (by_spark(THREE, 975, 66, 17), set(range(2, 83, 5))),
    (by_spark(THREE, 1049, 64, 16), set(range(4, 84, 5))),
    (
        by_spark(LARGE, 1, 26894, 100001),
        {n for n in range(200_000) if n % 3 == 0 or 100_000 <= n <= 150_000},
    ),
]


def stored(vector: Vector) -> bytes:
    assert vector.file is not None
    return (BY_SPARK / vector.file).read_bytes()


@pytest.mark.parametrize(("vector", "rows"), GOLDEN)
def test_a_vector_that_spark_wrote_is_read(vector: Vector, rows: set[int]) -> None:
    assert set(decode(vector, stored(vector))) == rows


@pytest.mark.parametrize(("vector", "rows"), GOLDEN[:3])
def test_our_bytes_are_those_of_spark(vector: Vector, rows: set[int]) -> None:
    assert vector.offset is not None
    begin = vector.offset + 4

    assert encode(BitMap64(rows)) == stored(vector)[begin : begin + vector.size]


@given(st.lists(ROWS, min_size=1, max_size=4))
def test_all_vectors_of_a_file_come_back(sets: list[set[int]]) -> None:
    vectors = {f"file{number}": BitMap64(rows) for number, rows in enumerate(sets)}

    content, described = encode_file(vectors, UUID_)

    assert {path: set(decode(found, content)) for path, found in described.items()} == {
        path: set(rows) for path, rows in vectors.items()
    }
    assert {found.file for found in described.values()} == {vector_file(UUID_)}
    assert [Vector.parse(found.action()) for found in described.values()] == list(
        described.values()
    )


@given(ROWS)
def test_an_inline_vector_is_read(rows: set[int]) -> None:
    data = encode(BitMap64(rows))
    inline = Vector(
        storage="i", place=z85.encode(data), offset=None, size=len(data), cardinality=len(rows)
    )

    assert inline.file is None
    assert set(decode(Vector.parse(inline.action()), b"")) == rows


def test_a_vector_may_be_in_a_folder() -> None:
    vector = replace(GOLDEN[0][0], place=f"ab{GOLDEN[0][0].place}")

    assert vector.file == f"ab/{vector_file(UUID(THREE))}"


DAMAGE: dict[str, Callable[[bytes, Vector], tuple[bytes, Vector]]] = {
    "another byte": lambda data, v: (data[:40] + bytes([data[40] ^ 1]) + data[41:], v),
    "another version": lambda data, v: (b"\x02" + data[1:], v),
    "cut off": lambda data, v: (data[:500], v),
    "empty": lambda _, v: (b"", v),
    "no checksum": lambda data, v: (data[: 1 + 4 + v.size], v),
    "another size": lambda data, v: (data, replace(v, size=v.size - 1)),
    "another offset": lambda data, v: (data, replace(v, offset=2)),
    "no offset": lambda data, v: (data, replace(v, offset=None)),
    "another cardinality": lambda data, v: (data, replace(v, cardinality=466)),
    "of another file": lambda data, v: (data, replace(v, offset=975)),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_seen(damage: str) -> None:
    vector, _ = GOLDEN[0]
    data, described = DAMAGE[damage](stored(vector), vector)

    with pytest.raises(DamagedVectorError):
        decode(described, data)


@pytest.mark.parametrize("magic", [b"\x00\x00\x00\x00", b"\xd0\xd3\x39\x64"])
def test_another_form_is_refused(magic: bytes) -> None:
    data = magic + encode(BitMap64([1]))[4:]
    inline = Vector(storage="i", place=z85.encode(data), offset=None, size=len(data), cardinality=1)

    with pytest.raises(DamagedVectorError, match="unknown form"):
        decode(inline, b"")


@pytest.mark.parametrize("place", ["", "short", "#" * 20])
def test_a_place_that_names_no_file_is_refused(place: str) -> None:
    with pytest.raises(DamagedVectorError):
        _ = replace(GOLDEN[0][0], place=place).file


@given(ROWS, ROWS)
def test_rows_are_merged(old: set[int], more: set[int]) -> None:
    assert set(merged(BitMap64(old), more - old, 2**41)) == old | more


@pytest.mark.parametrize("more", [[10], [-1], [3, 3], [2], [9, 2], [5, 2**70]])
def test_a_row_that_is_not_there_to_be_deleted_is_refused(more: list[int]) -> None:
    with pytest.raises(ValueError, match="a row to delete"):
        merged(BitMap64([2]), more, 10)


def test_merging_leaves_the_old_vector_as_it_was() -> None:
    old = BitMap64([2])

    assert list(merged(old, [9], 10)) == [2, 9]
    assert list(old) == [2]
