"""The index finds each key's current row, whatever happened to the files and to the index."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.lake.key_index.lake_table import Key, LakeTable, Place, key_of

DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "a bit of the header": lambda data: bytes([data[0] ^ 1]) + data[1:],
    "a bit of the last row": lambda data: data[:-1] + bytes([data[-1] ^ 1]),
    "a bit after the header": lambda data: data[:60] + bytes([1]) * 8 + data[68:],
    "truncated": lambda data: data[:-5],
    "longer": lambda data: data + b"\0" * 12,
    "empty": lambda data: data[:0],
    "zeros": lambda data: bytes(len(data)),
}
_TIMES = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59))  # noqa: DTZ001
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False).map(lambda value: value + 0.0),
    "double": st.floats(allow_nan=False).map(lambda value: value + 0.0),
    "decimal(38,9)": st.decimals(
        -(Decimal(10) ** 28), Decimal(10) ** 28, places=9, allow_nan=False
    ).map(lambda value: value + 0),
    "date": st.dates(date(1, 1, 1), date(9999, 12, 31)),
    "timestamp": _TIMES.map(lambda time: time.replace(tzinfo=UTC)),
    "timestamp_ntz": _TIMES,
    "string": st.text(st.sampled_from("a\0ß🙂"), max_size=6) | st.text(max_size=300),
    "binary": st.binary(max_size=5) | st.binary(min_size=254, max_size=262),
}
KEYS = [(kind,) for kind in VALUES] + [
    ("string", "string"),
    ("string", "binary", "string"),
    ("bigint", "smallint"),
    ("boolean", "date", "decimal(38,9)", "timestamp"),
]
Step = tuple[str, Any]


def steps(keys: st.SearchStrategy[Key]) -> st.SearchStrategy[list[Step]]:
    some = st.lists(keys, max_size=12, unique=True)
    return st.lists(
        st.tuples(st.just("apply"), st.tuples(some, some))
        | st.tuples(st.just("again"), st.integers(0, 5))
        | st.sampled_from([("compact", None), ("restart", None), ("gone", None)])
        | st.tuples(st.just("damage"), st.sampled_from(list(DAMAGE.values()))),
        min_size=1,
        max_size=8,
    )


def take(table: LakeTable, step: Step) -> None:
    kind, what = step
    match kind:
        case "apply":
            table.apply(*what)
        case "again":  # every nth known key gets another row
            table.apply([key for at, key in enumerate(table.places) if at % (what + 1) == 0])
        case "compact":
            table.compact()
        case "restart":
            table.restart()
        case "gone":
            shutil.rmtree(table.directory, ignore_errors=True)
        case "damage":
            for path in table.directory.glob("*.keys"):
                before = path.read_bytes()
                path.unlink()  # not in place: a mapped file keeps its content
                path.write_bytes(what(before) if before else b"")


@pytest.fixture(autouse=True, scope="module")
def _quick_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.mark.parametrize("types", KEYS, ids="+".join)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(memory_bytes=st.sampled_from([0, 300, 1 << 30]), data=st.data())
def test_every_key_is_found_where_the_model_has_it(
    types: tuple[str, ...], memory_bytes: int, data: st.DataObject
) -> None:
    keys = st.tuples(*[VALUES[kind] for kind in types])
    never = data.draw(st.lists(keys, max_size=5))
    with tempfile.TemporaryDirectory() as folder:
        table = LakeTable(Path(folder), key_of(*types), memory_bytes)
        for step in data.draw(steps(keys)):
            take(table, step)
            gone = step[1][1] if step[0] == "apply" else []
            asked = [*table.places, *gone, *never, *list(table.places)[:3]]

            assert table.look_up(asked) == table.expected(asked)
            assert table.index.statistics().memory_bytes <= memory_bytes


def test_many_keys_over_several_row_groups_batches_and_blocks(tmp_path: Path) -> None:
    table = LakeTable(tmp_path, key_of("string"))
    keys = [(f"key {number * 7919 % 150_000:05}",) for number in range(150_000)]
    table.append(keys[:70_000])
    table.append(keys[70_000:])
    table.apply(keys[::1000], keys[1::1000])

    expected: list[Place | None] = table.expected(keys)
    assert table.look_up(keys) == expected
    assert expected.count(None) == 150
