"""The SQL text of a MERGE; its effect is tested with Spark."""

import pytest

from cdc.events.schema import Column, TableSchema
from cdc.events.values.sql_text import spark_name
from cdc.lake.table.merge_plan import UNRESOLVED, merge_plan, stored_columns
from cdc.tables import TableId, TableMode

COLUMNS = (Column("id", "int"), Column("we`ird. name", "string"))


def schema(mode: TableMode, key: tuple[str, ...] = ()) -> TableSchema:
    return TableSchema(table=TableId("s", "t"), columns=COLUMNS, key=key, mode=mode)


@pytest.mark.parametrize(("name", "sql"), [("a", "`a`"), ("a`b", "`a``b`"), ("a.b", "`a.b`")])
def test_names_are_quoted(name: str, sql: str) -> None:
    assert spark_name(name) == sql


def test_a_keyed_table_applies_only_newer_events() -> None:
    plan = merge_plan(schema(TableMode.KEYED, ("id",)), keep=False)

    assert plan.condition == "target.`id` = source._cdc_column_0"
    assert plan.update_when == "source._cdc_offset > target._cdc_offset"
    assert plan.delete_when == f"{plan.update_when} AND source._cdc_deleted"
    assert plan.insert_when == "NOT source._cdc_deleted"
    assert plan.update_set == plan.insert_values
    assert plan.update_set["`we``ird. name`"] == "source._cdc_column_1"
    assert plan.arriving == {"id": "_cdc_column_0", "we`ird. name": "_cdc_column_1"}
    assert "`_cdc_offset`" in plan.update_set


def test_an_unchanged_value_comes_from_the_target_and_an_insert_without_it_fails() -> None:
    plan = merge_plan(schema(TableMode.KEYED, ("id",)), keep=True)

    assert plan.update_set is not None
    assert plan.update_set["`we``ird. name`"] == (
        "CASE WHEN array_contains(source._cdc_keep, 1) "
        "THEN target.`we``ird. name` ELSE source._cdc_column_1 END"
    )
    assert f"raise_error('{UNRESOLVED}')" in plan.insert_values["`we``ird. name`"]
    assert plan.update_set["`id`"] == "source._cdc_column_0"


def test_a_table_without_a_key_is_keyed_by_hash_and_copy() -> None:
    multiset = schema(TableMode.MULTISET)

    assert merge_plan(multiset, keep=False).condition == (
        "target.`_cdc_row_hash` = source._cdc_row_hash AND target.`_cdc_copy` = source._cdc_copy"
    )
    assert stored_columns(multiset) == (
        "id",
        "we`ird. name",
        "_cdc_offset",
        "_cdc_row_hash",
        "_cdc_copy",
    )


def test_an_append_only_table_only_inserts() -> None:
    plan = merge_plan(schema(TableMode.APPEND), keep=False)

    assert plan.condition == "target.`_cdc_offset` = source._cdc_offset"
    assert (plan.delete_when, plan.update_when, plan.update_set) == (None, None, None)
