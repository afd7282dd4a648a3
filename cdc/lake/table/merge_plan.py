"""Write the clauses of a MERGE with one row per key, as SQL text over ``source`` and ``target``.

``source`` comes from ``reduce.latest_per_key`` or ``reduce.multiset_rows``: the table's columns,
renamed (``arriving``), and our own. An event is applied only if it is newer than the row it finds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from cdc.events.schema import TableSchema
from cdc.events.values.sql_text import spark_name, spark_string
from cdc.tables import TableMode

OFFSET: Final = "_cdc_offset"
OP: Final = "_cdc_op"
DELETED: Final = "_cdc_deleted"
KEEP: Final = "_cdc_keep"  # array of the numbers of columns whose value the event did not carry
REASON: Final = "_cdc_reason"
ROW_HASH: Final = "_cdc_row_hash"
COPY: Final = "_cdc_copy"
BY_OPERATION: Final = {
    "inserts": "c",
    "updates": "u",
    "deletes": "d",
    "reads": "r",
    "truncates": "t",
}
"""Name under which position and ledger count events -> ``op`` of these events."""

UNRESOLVED: Final = "wal2lake: an unchanged value has no row to be taken from"
"""Text of the error that fails a MERGE, so that it never writes a placeholder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """Holds the clauses of a MERGE in this order; None for a clause that the mode does not have.

    ``arriving`` maps each column of the table to its name in ``source``. The columns are renamed
    because Delta adds its own to both sides, and a column of the same name (``filepath``,
    ``_row_id_``) would clash with them.
    """

    arriving: Mapping[str, str]
    condition: str
    delete_when: str | None
    update_when: str | None
    update_set: Mapping[str, str] | None
    insert_when: str | None
    insert_values: Mapping[str, str]


def identity_columns(schema: TableSchema) -> tuple[str, ...]:
    """Return the columns that identify a row of the lake's table."""
    if schema.mode is TableMode.MULTISET:
        return (ROW_HASH, COPY)
    return schema.key if schema.mode is TableMode.KEYED else (OFFSET,)


def stored_columns(schema: TableSchema) -> tuple[str, ...]:
    """Return all columns of the lake's table: the source's, then our own."""
    own = (OFFSET, ROW_HASH, COPY) if schema.mode is TableMode.MULTISET else (OFFSET,)
    return schema.names + own


def arriving_names(schema: TableSchema) -> dict[str, str]:
    """Return the name in ``source`` of each column of the table."""
    return {name: f"_cdc_column_{number}" for number, name in enumerate(schema.names)}


def merge_plan(schema: TableSchema, *, keep: bool) -> MergePlan:
    """Return the plan for a table.

    ``keep`` says that some source row lacks a value that the target's row has to supply. Without
    it the MERGE does not read the target's other columns, which is much cheaper.
    """
    source = arriving_names(schema)
    condition = " AND ".join(
        f"target.{spark_name(name)} = source.{source.get(name, name)}"
        for name in identity_columns(schema)
    )
    if schema.mode is TableMode.APPEND:
        return _append_plan(schema, condition)
    guard = f"source.{OFFSET} > target.{OFFSET}"
    return MergePlan(
        arriving=arriving_names(schema),
        condition=condition,
        delete_when=f"{guard} AND source.{DELETED}",
        update_when=guard,
        update_set=_values(schema, keep=keep, kept="target.{}"),
        insert_when=f"NOT source.{DELETED}",
        insert_values=_values(schema, keep=keep, kept=f"raise_error({spark_string(UNRESOLVED)})"),
    )


def _append_plan(schema: TableSchema, condition: str) -> MergePlan:
    return MergePlan(
        arriving=arriving_names(schema),
        condition=condition,
        delete_when=None,
        update_when=None,
        update_set=None,
        insert_when=None,
        insert_values=_values(schema, keep=False, kept=""),
    )


def _values(schema: TableSchema, *, keep: bool, kept: str) -> dict[str, str]:
    source = arriving_names(schema)
    values = {
        spark_name(name): f"source.{source.get(name, name)}" for name in stored_columns(schema)
    }
    for number, name in enumerate(schema.names):
        if keep and name not in schema.key:
            old, new = kept.format(spark_name(name)), f"source.{source[name]}"
            values[spark_name(name)] = (
                f"CASE WHEN array_contains(source.{KEEP}, {number}) THEN {old} ELSE {new} END"
            )
    return values
