"""Reduces all changes of a slice to one row per key (or per copy of a row), by offset.

Within one topic offsets follow the order of commits, so the last event of a key determines its row;
only values that it marks as unchanged are taken from earlier events.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.changes.reasons import AFTER_REFUSED, TOO_FEW_COPIES
from cdc.apply.changes.unchanged import maybe_unchanged
from cdc.events.schema import TableSchema
from cdc.events.values.sql_text import spark_name, spark_string
from cdc.lake.table.merge_plan import (
    BY_OPERATION,
    COPY,
    DELETED,
    KEEP,
    OFFSET,
    OP,
    REASON,
    ROW_HASH,
)
from cdc.lake.table.row_hash import row_hash

NET: Final = "_cdc_net"
HELD: Final = "_cdc_held"
_GOOD: Final = f"{REASON} IS NULL"
_APPLIES: Final = f"({REASON} IS NULL AND {OP} IN ('c', 'r', 'u', 'd'))"
SINCE: Final = "greatest(coalesce(_cdc_full, -1L), coalesce(_cdc_refused + 1, -1L))"
"""Events of a key before this offset do not count for its row; -1 if all events of the slice do."""

_FULL: Final = f"{OP} IN ('c', 'r', 'd')"  # makes all older events of the key irrelevant


def overview(changes: DataFrame) -> DataFrame:
    """Return one row: events, refused, keeps, moves, last_truncate (offset), and BY_OPERATION.

    ``keeps`` counts events with an unchanged value, ``moves`` the creates among them.
    """
    return changes.selectExpr(
        "count(*) AS events",
        f"count_if(NOT ({_GOOD})) AS refused",
        f"count_if({_GOOD} AND {KEEP} IS NOT NULL) AS keeps",
        f"count_if({_GOOD} AND {KEEP} IS NOT NULL AND {OP} = 'c') AS moves",
        f"max(IF({_GOOD} AND {OP} = 't', {OFFSET}, NULL)) AS last_truncate",
        *(
            f"count_if({_GOOD} AND {OP} = {spark_string(op)}) AS {name}"
            for name, op in BY_OPERATION.items()
        ),
    )


def after_truncate(changes: DataFrame, offset: int) -> DataFrame:
    """Return the changes after a truncate at ``offset``, to be applied to the emptied table."""
    return changes.where(f"{OFFSET} > {offset}")


def latest_per_key(changes: DataFrame, schema: TableSchema, *, carry: bool) -> DataFrame:
    """Return one row per key, with its columns as of the last event that was not refused.

    With ``carry`` (needed if ``overview`` counts keeps) a value marked as unchanged is taken from
    an older event of the slice, back to the last full row of the key and not across a refused
    event. Only the row in the lake can supply the columns that remain in ``_cdc_keep``. A row with
    a ``_cdc_reason`` cannot be built. Takes one shuffle.
    """
    rows = _carried(changes, schema) if carry else _ranked(changes, schema)
    return rows.selectExpr(*map(spark_name, schema.names), OFFSET, OP, DELETED, KEEP, REASON)


def unresolved(latest: DataFrame, target: DataFrame, schema: TableSchema) -> DataFrame:
    """Return the rows with unchanged values for which the lake has no row to take them from."""
    waiting = latest.where(f"{_GOOD} AND NOT {DELETED} AND {KEEP} IS NOT NULL").alias("source")
    same = " AND ".join(f"source.{spark_name(k)} = target.{spark_name(k)}" for k in schema.key)
    return waiting.join(target.alias("target"), F.expr(same), "left_anti")


def net_copies(changes: DataFrame, schema: TableSchema) -> DataFrame:
    """Return one row per distinct row of a table without a key, with its net change in copies."""
    columns = ", ".join(spark_name(name) for name in schema.names)
    counted = changes.where(f"{_GOOD} AND {OP} IN ('c', 'r', 'd')").selectExpr(
        f"{row_hash(schema)} AS {ROW_HASH}",
        f"IF({DELETED}, -1L, 1L) AS one",
        OFFSET,
        f"struct({columns}) AS row",
    )
    grouped = counted.groupBy(ROW_HASH).agg(
        F.expr(f"sum(one) AS {NET}"),
        F.expr(f"max({OFFSET}) AS {OFFSET}"),
        F.expr("first(row) AS row"),
    )
    return grouped.where(f"{NET} <> 0").selectExpr("row.*", ROW_HASH, NET, OFFSET)


def lake_copies(target: DataFrame, net: DataFrame) -> DataFrame:
    """Return how many copies the lake holds of each row in ``net``, by row hash."""
    affected = target.join(net.select(ROW_HASH), ROW_HASH, "left_semi")
    return affected.groupBy(ROW_HASH).agg(F.expr(f"count(*) AS {HELD}"))


def multiset_rows(net: DataFrame, held: DataFrame, schema: TableSchema) -> DataFrame:
    """Return rows for a MERGE on hash and copy number; copies are numbered from 1 without gaps.

    New copies continue the numbering, and the last copies are deleted first. A row with a
    ``_cdc_reason`` deletes more copies than exist. Not idempotent: each event may be counted only
    once.
    """
    had = f"coalesce({HELD}, 0L)"
    numbers = (
        f"CASE WHEN {NET} > 0 THEN sequence({had} + 1, {had} + {NET})"
        f" WHEN {had} + {NET} < 0 THEN array(CAST(NULL AS bigint))"
        f" ELSE sequence({had} + {NET} + 1, {had}) END"
    )
    return net.join(held, ROW_HASH, "left").selectExpr(
        *(spark_name(name) for name in schema.names),
        OFFSET,
        ROW_HASH,
        f"explode({numbers}) AS {COPY}",
        f"{NET} < 0 AS {DELETED}",
        f"CAST(NULL AS array<int>) AS {KEEP}",
        f"IF({had} + {NET} < 0, {spark_string(TOO_FEW_COPIES)}, NULL) AS {REASON}",
    )


# Rows are filtered after the window and not before it: Spark would push a filter on a decoded
# column down through the decoding, and decode each event once for every use of the column.


def _ranked(changes: DataFrame, schema: TableSchema) -> DataFrame:
    keys = ", ".join(spark_name(name) for name in schema.key)
    newest = f"IF({_APPLIES}, 0, 1), {OFFSET} DESC"
    ranked = f"row_number() OVER (PARTITION BY {keys} ORDER BY {newest}) AS _cdc_rank"
    return changes.selectExpr("*", ranked).where(f"_cdc_rank = 1 AND {_APPLIES}")


def _carried(changes: DataFrame, schema: TableSchema) -> DataFrame:
    keys = ", ".join(spark_name(name) for name in schema.key)
    last = f"max(IF({_APPLIES}, {OFFSET}, NULL)) OVER (PARTITION BY {keys}) AS _cdc_last"
    seen = with_latest_values(changes, schema, upto="CURRENT ROW").selectExpr("*", last)
    return _resolved(seen.where(f"{OFFSET} = _cdc_last"), schema, maybe_unchanged(schema))


def with_latest_values(changes: DataFrame, schema: TableSchema, *, upto: str) -> DataFrame:
    """Return each event with the latest values that the slice has of its key.

    ``upto`` is the end of the window: ``CURRENT ROW`` or ``1 PRECEDING``. Adds the columns
    ``_cdc_known_<n>``, value and offset (``at``) where column n was last sent; ``_cdc_full`` and
    ``_cdc_refused``, offsets of the last full row and of the last refused event.
    """
    keys = ", ".join(spark_name(name) for name in schema.key)
    window = (
        f"OVER (PARTITION BY {keys} ORDER BY {OFFSET} ROWS BETWEEN UNBOUNDED PRECEDING AND {upto})"
    )
    sent = [
        f"last(IF({_APPLIES} AND NOT {is_unchanged(n)}, "
        f"struct({spark_name(schema.names[n])} AS value, {OFFSET} AS at), NULL), true) "
        f"{window} AS _cdc_known_{n}"
        for n in maybe_unchanged(schema)
    ]
    return changes.selectExpr(
        "*",
        *sent,
        f"max(IF({_APPLIES} AND {_FULL}, {OFFSET}, NULL)) {window} AS _cdc_full",
        f"max(IF({_GOOD}, NULL, {OFFSET})) {window} AS _cdc_refused",
    )


def _resolved(seen: DataFrame, schema: TableSchema, marked: list[int]) -> DataFrame:
    missing = {
        n: f"({is_unchanged(n)} AND coalesce(_cdc_known_{n}.at, -2L) < {SINCE})" for n in marked
    }
    columns = [
        f"IF({missing[n]}, NULL, _cdc_known_{n}.value) AS {spark_name(name)}"
        if n in missing
        else spark_name(name)
        for n, name in enumerate(schema.names)
    ]
    some = " OR ".join(missing.values()) or "false"
    numbers = ", ".join(f"IF({condition}, {n}, NULL)" for n, condition in missing.items())
    left = numbers or "CAST(NULL AS int)"
    return seen.selectExpr(
        *columns,
        OFFSET,
        OP,
        DELETED,
        f"IF({some}, filter(array({left}), x -> x IS NOT NULL), NULL) AS {KEEP}",
        f"IF(({some}) AND {SINCE} >= 0, {spark_string(AFTER_REFUSED)}, NULL) AS {REASON}",
    )


def is_unchanged(number: int) -> str:
    """Return the condition that an event marks the column as unchanged."""
    return f"coalesce(array_contains({KEEP}, {number}), false)"
