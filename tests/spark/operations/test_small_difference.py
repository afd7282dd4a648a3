"""The difference of a reading is the same whether this process finds it or Spark does."""

import random
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, Final

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cdc.apply.difference.row_difference import KIND, SWEPT, at_keys, unlike, whole_rows
from cdc.apply.local.arrow import arrow_type
from cdc.apply.local.not_local import NotLocalError
from cdc.events.schema import Column, TableSchema
from cdc.lake.table.merge_plan import COPY, DELETED, OFFSET, ROW_HASH
from cdc.operations.resnapshot.copies import Copies
from cdc.operations.resnapshot.small_difference import (
    at_offset,
    kept_difference,
    small_difference,
)
from cdc.tables import TableId, TableMode
from tests.local_spark import frame_of

VALUES: Final[dict[str, Sequence[Any]]] = {
    "string": ("", "x", "X", "ä\x00", None),
    "bigint": (0, -1, 2**62, None),
    "double": (0.0, -0.0, float("nan"), float("inf"), 1.5, None),
    "float": (0.5, -0.0, float("nan"), None),
    "decimal(10,2)": ("1.00", "-0.01", None),
    "date": (-719162, 0, 20000, None),
    "timestamp": (-62135596800000000, 1, None),
    "timestamp_ntz": (253402300799999999, 0, None),
    "boolean": (True, False, None),
    "binary": (b"", b"\x00\xff", None),
    "array<string>": ([], ["a", None], [None], ["a"], None),
    "array<double>": ([], [0.0], [-0.0], [float("nan")], None),
}
EXACT: Final = [kind for kind in VALUES if "double" not in kind and kind != "float"]
OFFSET_OF_CUT: Final = 7


def schema(kinds: Sequence[str], mode: TableMode, *key: str) -> TableSchema:
    columns = [Column(f"{kind} of `it`", kind) for kind in kinds]
    columns += [Column(name, "int") for name in key]
    return TableSchema(table=TableId("a", "t"), columns=tuple(columns), key=key, mode=mode)


def drawn(dice: random.Random, of: TableSchema, keys: Sequence[int | None]) -> pa.Table:
    """Return rows with these keys and random values."""
    columns = {
        column.name: [
            key if column.name in of.key else dice.choice(VALUES[column.type]) for key in keys
        ]
        for column in of.columns
    }
    return pa.table(
        {c.name: array(columns[c.name], arrow_type(c.type)) for c in of.columns},
    )


def array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(kind):
        return pa.array(values, pa.string()).cast(kind)
    if pa.types.is_date32(kind):
        return pa.array(values, pa.int32()).cast(kind)
    if pa.types.is_timestamp(kind):
        return pa.array(values, pa.int64()).cast(kind)
    return pa.array(values, kind)


def rows_of(difference: pa.Table, of: TableSchema) -> Counter[Hashable]:
    """Return the rows, of swept ones with a key only that: the rest is not merged."""
    names = [*of.names, OFFSET, DELETED, KIND]
    names += [ROW_HASH, COPY] if of.mode is TableMode.MULTISET else []
    unmerged = dict.fromkeys(set(of.names) - set(of.key)) if of.key else {}
    rows = difference.select(names).to_pylist()
    return Counter(repr(row | (unmerged if row[KIND] == SWEPT else {})) for row in rows)


def both_ways(
    spark: SparkSession,
    read: pa.Table,
    held: pa.Table,
    of: TableSchema,
    keys: Sequence[tuple[int, int]] | None = None,
) -> tuple[Counter[Hashable], Counter[Hashable]]:
    """Return the difference as Spark finds it, and as this process does.

    If a reading is of some ``keys``, the lake's other rows have no part in it.
    """
    lake = whole_rows(spark.createDataFrame(held), of, 3)
    if keys is not None:
        lake = at_keys(lake, frame_of(spark, keys, "a int, b int"), of)
    spark_s = unlike(spark.createDataFrame(read), lake, of, OFFSET_OF_CUT).toArrow()
    numbered, there = Copies(of).numbered(read), at_offset(Copies(of).numbered(held), of, 3)
    found = small_difference(numbered, there, of, None if keys is None else frozenset(keys))
    ours = kept_difference(numbered, there, of, found, OFFSET_OF_CUT)
    assert sum(found.counts.values()) == ours.num_rows
    return rows_of(spark_s.cast(ours.select(spark_s.column_names).schema), of), rows_of(ours, of)


@pytest.mark.parametrize("kinds", [list(VALUES), ["string"], ["double", "array<double>"]], ids=len)
def test_of_a_table_with_a_key(spark: SparkSession, kinds: list[str]) -> None:
    dice, of = random.Random(1), schema(kinds, TableMode.KEYED, "a", "b")
    held = drawn(dice, of, range(120))
    same = held.slice(60)
    read = pa.concat_tables(
        [drawn(dice, of, range(30, 60)), same, drawn(dice, of, range(200, 220))]
    )

    theirs, ours = both_ways(spark, read, held, of)

    assert ours == theirs
    assert len(ours) >= 30 + 20  # 30 are swept and 20 added; most of 30 are changed


def test_of_some_keys(spark: SparkSession) -> None:
    dice, of = random.Random(4), schema(EXACT, TableMode.KEYED, "a", "b")
    held, read = drawn(dice, of, range(40)), drawn(dice, of, range(20, 60))
    keys = [(number, number) for number in range(10, 50)]
    read = read.slice(0, 30)

    theirs, ours = both_ways(spark, read, held, of, keys)

    assert ours == theirs
    assert len(ours) >= 10 + 10  # 10 are swept and 10 added; most of 20 are changed
    assert len(ours) <= len(keys)


def test_a_key_in_another_spelling_is_left_to_spark() -> None:
    of = schema([], TableMode.KEYED, "a")
    read, held = (drawn(random.Random(5), of, [number]) for number in (7, 8))

    with pytest.raises(NotLocalError, match="spells a key"):
        small_difference(read, held, of, frozenset({(8,)}))


def test_of_a_table_without_a_key(spark: SparkSession) -> None:
    dice, of = random.Random(2), schema(EXACT[:3], TableMode.MULTISET)
    held, read = drawn(dice, of, [None] * 300), drawn(dice, of, [None] * 320)

    theirs, ours = both_ways(spark, read, held, of)

    assert ours == theirs
    assert len(ours) > 20


@pytest.mark.parametrize("mode", [TableMode.KEYED, TableMode.MULTISET])
def test_of_equal_tables_there_is_none(spark: SparkSession, mode: TableMode) -> None:
    of = schema(EXACT, mode, *(["id"] if mode is TableMode.KEYED else []))
    rows = drawn(random.Random(3), of, range(50))

    assert both_ways(spark, rows, rows.take(list(reversed(range(50)))), of) == (
        Counter(),
        Counter(),
    )
