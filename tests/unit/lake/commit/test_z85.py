"""Z85 is ZeroMQ's: its published example, all bytes there and back, and what it is not."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.lake.commit import z85


def test_the_example_of_the_specification() -> None:
    data = bytes([0x86, 0x4F, 0xD2, 0x6F, 0xB5, 0x59, 0xF7, 0x5B])

    assert z85.encode(data) == "HelloWorld"
    assert z85.decode("HelloWorld", 8) == data


def test_a_uuid_that_spark_wrote() -> None:
    uuid = UUID("f9aef80a-1407-4718-8605-7046c00c0fdd")

    assert z85.encode(uuid.bytes) == "}l6G16BdbBH6qJ=ZZH+f"


@given(st.binary(max_size=50))
def test_bytes_come_back(data: bytes) -> None:
    assert z85.decode(z85.encode(data), len(data)) == data


@pytest.mark.parametrize(
    ("text", "size"),
    [("Hello", 5), ("HelloWorld", 4), ("Hell", 3), ("Hel o", 4), ("#####", 4), ("Hellä", 4)],
)
def test_what_is_not_z85_of_that_size_is_refused(text: str, size: int) -> None:
    with pytest.raises(ValueError, match="Z85"):
        z85.decode(text, size)
