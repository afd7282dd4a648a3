"""Which tables without a key are copied: those whose equal rows one reader can number."""

import pytest

from cdc.events.schema import Column, TableSchema
from cdc.operations.first_snapshot import numbered, page_range
from cdc.operations.first_snapshot.numbered import can_be_numbered
from cdc.tables import TableId, TableMode


def schema(kind: str = "int", mode: TableMode = TableMode.MULTISET) -> TableSchema:
    """Return the schema of a table with one column."""
    key = ("n",) if mode is TableMode.KEYED else ()
    return TableSchema(table=TableId("a", "t"), columns=(Column("n", kind),), key=key, mode=mode)


@pytest.mark.parametrize("mode", [TableMode.KEYED, TableMode.APPEND])
def test_other_tables_need_no_numbers(mode: TableMode) -> None:
    assert can_be_numbered(schema("double", mode), pages=10**6)


@pytest.mark.parametrize("kind", ["float", "double", "array<double>"])
def test_digests_of_floats_are_left_to_spark(kind: str) -> None:
    assert not can_be_numbered(schema(kind), pages=1)


def test_a_large_table_is_left_to_spark() -> None:
    assert can_be_numbered(schema(), numbered.MOST_PAGES)
    assert not can_be_numbered(schema(), numbered.MOST_PAGES + 1)


def test_several_readers_do_not_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_range, "_LEAST", 10)

    assert can_be_numbered(schema(), pages=10)
    assert not can_be_numbered(schema(), pages=11)
