"""What a MERGE of one row per key does, as SQL text over ``source`` and ``target``.

``source`` is what ``order.latest_per_key`` (or ``order.multiset_rows``) gives: the table's
columns, by other names (``arriving``), and ours. An event is applied only where it is newer than
what the row holds.
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
KEEP: Final = "_cdc_keep"  # array of column numbers whose value the event did not carry
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
"""The ``op`` of an event, by the name under which position and ledger count it."""

UNRESOLVED: Final = "wal2lake: an unchanged value has no row to be taken from"
"""Text of the error that fails a MERGE rather than write a placeholder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """The clauses, in this order; None is a clause that the mode does not have.

    ``arriving``: what each column of the table is called in ``source``. Delta adds columns to
    both sides, and two of one name are one too many: ``filepath``, ``_row_id_``.
    """

    arriving: Mapping[str, str]
    condition: str
    delete_when: str | None
    update_when: str | None
    update_set: Mapping[str, str] | None
    insert_when: str | None
    insert_values: Mapping[str, str]


def identity(schema: TableSchema) -> tuple[str, ...]:
    """The columns of the lake's table that identify a row of it."""
    if schema.mode is TableMode.MULTISET:
        return (ROW_HASH, COPY)
    return schema.key if schema.mode is TableMode.KEYED else (OFFSET,)


def stored(schema: TableSchema) -> tuple[str, ...]:
    """All columns of the lake's table: the source's, then ours."""
    own = (OFFSET, ROW_HASH, COPY) if schema.mode is TableMode.MULTISET else (OFFSET,)
    return schema.names + own


def arriving(schema: TableSchema) -> dict[str, str]:
    return {name: f"_cdc_column_{number}" for number, name in enumerate(schema.names)}


def merge_plan(schema: TableSchema, *, keep: bool) -> MergePlan:
    """The plan; ``keep`` where some row has a value that the target's row must supply.

    Without it the MERGE need not read the target's other columns, which is much cheaper.
    """
    source = arriving(schema)
    condition = " AND ".join(
        f"target.{spark_name(name)} = source.{source.get(name, name)}" for name in identity(schema)
    )
    if schema.mode is TableMode.APPEND:
        return _append_plan(schema, condition)
    guard = f"source.{OFFSET} > target.{OFFSET}"
    return MergePlan(
        arriving=arriving(schema),
        condition=condition,
        delete_when=f"{guard} AND source.{DELETED}",
        update_when=guard,
        update_set=_values(schema, keep=keep, kept="target.{}"),
        insert_when=f"NOT source.{DELETED}",
        insert_values=_values(schema, keep=keep, kept=f"raise_error({spark_string(UNRESOLVED)})"),
    )


def _append_plan(schema: TableSchema, condition: str) -> MergePlan:
    return MergePlan(
        arriving=arriving(schema),
        condition=condition,
        delete_when=None,
        update_when=None,
        update_set=None,
        insert_when=None,
        insert_values=_values(schema, keep=False, kept=""),
    )


def _values(schema: TableSchema, *, keep: bool, kept: str) -> dict[str, str]:
    source = arriving(schema)
    values = {spark_name(name): f"source.{source.get(name, name)}" for name in stored(schema)}
    for number, name in enumerate(schema.names):
        if keep and name not in schema.key:
            old, new = kept.format(spark_name(name)), f"source.{source[name]}"
            values[spark_name(name)] = (
                f"CASE WHEN array_contains(source.{KEEP}, {number}) THEN {old} ELSE {new} END"
            )
    return values
