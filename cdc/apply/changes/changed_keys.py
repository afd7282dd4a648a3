"""Completes the second half of a key change from the row that the first half deleted.

For one update of a key in Postgres the connector sends a delete of the old key, followed in the
topic by a create of the new one. Neither contains large values that did not change. These are taken
from the slice's events of the old key, or from its row in the lake. If the old row came from a key
change itself (a chain, a swap), its values are taken from the source of that one.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.changes.reasons import NO_OLD_ROW
from cdc.apply.changes.reduce import SINCE, is_unchanged, with_latest_values
from cdc.apply.changes.unchanged import maybe_unchanged
from cdc.events.schema import TableSchema
from cdc.events.values.sql_text import spark_name, spark_string
from cdc.lake.table.merge_plan import KEEP, OFFSET, OP, REASON

_AT, _GONE, _SOURCE, _VALUE = "_cdc_at", "_cdc_gone", "_cdc_source", "_cdc_value_"
"""Names beside a table's columns, which never begin with ``_cdc_``."""


def resolve(changes: DataFrame, target: DataFrame, schema: TableSchema) -> DataFrame:
    """Return the changes with every create completed.

    A create that cannot be completed gets a ``_cdc_reason``. ``target`` is the lake's table before
    these changes.
    """
    marked = maybe_unchanged(schema)
    values = _from_old_row(changes, target, schema).localCheckpoint()
    while not values.where(f"{_SOURCE} IS NOT NULL").isEmpty():
        values = _one_step_back(values, marked).localCheckpoint()
    return _filled(changes, values, schema)


def _from_old_row(changes: DataFrame, target: DataFrame, schema: TableSchema) -> DataFrame:
    """Return one row per such create, at offset ``_AT``, with its missing values.

    ``_SOURCE`` is the offset of another such create that has the remaining values. A value is a
    struct of one field, so that a known null differs from an unknown value.
    """
    halves = _halves(changes).localCheckpoint()
    deleted = with_latest_values(_of_old_keys(changes, halves, schema), schema, upto="1 PRECEDING")
    deleted = deleted.where(f"{OP} = 'd' AND {REASON} IS NULL")
    halves = halves.join(deleted.withColumnRenamed(OFFSET, _GONE), _GONE, "left")
    same = " AND ".join(f"half.{spark_name(k)} = target.{spark_name(k)}" for k in schema.key)
    joined = halves.alias("half").join(target.alias("target"), F.expr(same), "left")
    values = [
        f"CASE WHEN _cdc_known_{n}.at >= {SINCE} THEN struct(_cdc_known_{n}.value AS value) "
        f"WHEN {SINCE} < 0 AND target.{OFFSET} IS NOT NULL "
        f"THEN struct(target.{spark_name(schema.names[n])} AS value) END AS {_VALUE}{n}"
        for n in maybe_unchanged(schema)
    ]
    chained = f"IF({SINCE} >= 0 AND {SINCE} = _cdc_full, _cdc_full, NULL) AS {_SOURCE}"
    return joined.selectExpr(_AT, chained, *values)


def _of_old_keys(changes: DataFrame, halves: DataFrame, schema: TableSchema) -> DataFrame:
    """Return only events of the deleted keys: there may be many other events, with wide rows."""
    gone = halves.select(F.col(_GONE).alias(OFFSET))
    keys = changes.select(OFFSET, *map(spark_name, schema.key)).join(gone, OFFSET)
    same = " AND ".join(f"change.{spark_name(k)} = gone.{spark_name(k)}" for k in schema.key)
    distinct = keys.drop(OFFSET).distinct()
    return changes.alias("change").join(distinct.alias("gone"), F.expr(same), "left_semi")


def _halves(changes: DataFrame) -> DataFrame:
    """Creates with missing values, and the offset of the delete directly before each."""
    # One partition of three small columns; without PARTITION BY Spark warns at every step.
    over = f"OVER (PARTITION BY {OFFSET} < 0 ORDER BY {OFFSET})"
    before = f"lag(struct({OFFSET} AS at, {OP} AS op)) {over} AS before"
    places = changes.selectExpr(OFFSET, OP, f"{KEEP} IS NOT NULL AND {REASON} IS NULL AS waits")
    return (
        places.selectExpr("*", before)
        .where(f"waits AND {OP} = 'c'")
        .selectExpr(f"{OFFSET} AS {_AT}", f"IF(before.op = 'd', before.at, NULL) AS {_GONE}")
    )


def _one_step_back(creates: DataFrame, marked: list[int]) -> DataFrame:
    """Take missing values from the source, then refer to the source's source; offsets only fall."""
    values = [f"coalesce(half.{_VALUE}{n}, source.{_VALUE}{n}) AS {_VALUE}{n}" for n in marked]
    same = F.expr(f"half.{_SOURCE} = source.{_AT}")
    joined = creates.alias("half").join(creates.alias("source"), same, "left")
    return joined.selectExpr(f"half.{_AT} AS {_AT}", f"source.{_SOURCE} AS {_SOURCE}", *values)


def _filled(changes: DataFrame, values: DataFrame, schema: TableSchema) -> DataFrame:
    marked = maybe_unchanged(schema)
    missing = {n: f"({_AT} IS NOT NULL AND {is_unchanged(n)})" for n in marked}
    lost = " OR ".join(f"({missing[n]} AND {_VALUE}{n} IS NULL)" for n in marked)
    columns = [
        f"IF({missing[n]}, {_VALUE}{n}.value, {spark_name(name)}) AS {spark_name(name)}"
        if n in missing
        else spark_name(name)
        for n, name in enumerate(schema.names)
    ]
    own = [name for name in changes.columns if name not in {*schema.names, KEEP, REASON}]
    return changes.join(values, F.expr(f"{OFFSET} = {_AT}"), "left").selectExpr(
        *columns,
        *own,
        f"IF({_AT} IS NULL, {KEEP}, NULL) AS {KEEP}",
        f"coalesce({REASON}, IF({lost}, {spark_string(NO_OLD_ROW)}, NULL)) AS {REASON}",
    )
