"""The second half of a key's change: what it leaves out is in the row that the first half deleted.

Postgres logs one update, the connector sends a delete of the old key and, next in the topic, a
create of the new one. Large values that did not change are in neither. They are taken from what
the slice says of the old key, or from its row in the lake; where the old row came by such a change
itself (a chain, a swap), from where that one took them.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.changes.reduce import SINCE, is_kept, kept_columns, known
from cdc.events.schema import TableSchema
from cdc.events.values.sql_text import spark_name, spark_string
from cdc.lake.table.merge_plan import KEEP, OFFSET, OP, REASON

_AT, _GONE, _SOURCE, _VALUE = "_cdc_at", "_cdc_gone", "_cdc_source", "_cdc_value_"
"""Beside a table's columns, which may have any name but one that begins with ``_cdc_``."""
NO_OLD_ROW = "its key was changed, and the row that holds its unchanged values is not there"


def resolve(changes: DataFrame, target: DataFrame, schema: TableSchema) -> DataFrame:
    """The changes with every create made whole; one that cannot be gets a ``_cdc_reason``.

    ``target`` is the lake's table before these changes.
    """
    marked = kept_columns(schema)
    found = _from_old_row(changes, target, schema).localCheckpoint()
    while not found.where(f"{_SOURCE} IS NOT NULL").isEmpty():
        found = _one_step_back(found, marked).localCheckpoint()
    return _filled(changes, found, schema)


def _from_old_row(changes: DataFrame, target: DataFrame, schema: TableSchema) -> DataFrame:
    """One row per such create (``_AT``): its values, ``_SOURCE``: another one that has the rest.

    A value is a struct of one field, so that a null that is known differs from an unknown.
    """
    halves = _halves(changes).localCheckpoint()
    deleted = known(_of_old_keys(changes, halves, schema), schema, upto="1 PRECEDING")
    deleted = deleted.where(f"{OP} = 'd' AND {REASON} IS NULL")
    halves = halves.join(deleted.withColumnRenamed(OFFSET, _GONE), _GONE, "left")
    same = " AND ".join(f"half.{spark_name(k)} = target.{spark_name(k)}" for k in schema.key)
    joined = halves.alias("half").join(target.alias("target"), F.expr(same), "left")
    values = [
        f"CASE WHEN _cdc_known_{n}.at >= {SINCE} THEN struct(_cdc_known_{n}.value AS value) "
        f"WHEN {SINCE} < 0 AND target.{OFFSET} IS NOT NULL "
        f"THEN struct(target.{spark_name(schema.names[n])} AS value) END AS {_VALUE}{n}"
        for n in kept_columns(schema)
    ]
    chained = f"IF({SINCE} >= 0 AND {SINCE} = _cdc_full, _cdc_full, NULL) AS {_SOURCE}"
    return joined.selectExpr(_AT, chained, *values)


def _of_old_keys(changes: DataFrame, halves: DataFrame, schema: TableSchema) -> DataFrame:
    """Only events of keys that such a delete is about: the others may be many, and are wide."""
    gone = halves.select(F.col(_GONE).alias(OFFSET))
    keys = changes.select(OFFSET, *map(spark_name, schema.key)).join(gone, OFFSET)
    same = " AND ".join(f"change.{spark_name(k)} = gone.{spark_name(k)}" for k in schema.key)
    one_each = keys.drop(OFFSET).distinct()
    return changes.alias("change").join(one_each.alias("gone"), F.expr(same), "left_semi")


def _halves(changes: DataFrame) -> DataFrame:
    """Such creates, with the offset of the delete that comes directly before."""
    # One partition, of three small columns; without the word Spark warns of it at every step.
    over = f"OVER (PARTITION BY {OFFSET} < 0 ORDER BY {OFFSET})"
    before = f"lag(struct({OFFSET} AS at, {OP} AS op)) {over} AS before"
    places = changes.selectExpr(OFFSET, OP, f"{KEEP} IS NOT NULL AND {REASON} IS NULL AS waits")
    return (
        places.selectExpr("*", before)
        .where(f"waits AND {OP} = 'c'")
        .selectExpr(f"{OFFSET} AS {_AT}", f"IF(before.op = 'd', before.at, NULL) AS {_GONE}")
    )


def _one_step_back(found: DataFrame, marked: list[int]) -> DataFrame:
    """Each takes what it lacks from its source, and the source's source; offsets only fall."""
    values = [f"coalesce(half.{_VALUE}{n}, source.{_VALUE}{n}) AS {_VALUE}{n}" for n in marked]
    same = F.expr(f"half.{_SOURCE} = source.{_AT}")
    joined = found.alias("half").join(found.alias("source"), same, "left")
    return joined.selectExpr(f"half.{_AT} AS {_AT}", f"source.{_SOURCE} AS {_SOURCE}", *values)


def _filled(changes: DataFrame, found: DataFrame, schema: TableSchema) -> DataFrame:
    marked = kept_columns(schema)
    taken = {n: f"({_AT} IS NOT NULL AND {is_kept(n)})" for n in marked}
    lost = " OR ".join(f"({taken[n]} AND {_VALUE}{n} IS NULL)" for n in marked)
    columns = [
        f"IF({taken[n]}, {_VALUE}{n}.value, {spark_name(name)}) AS {spark_name(name)}"
        if n in taken
        else spark_name(name)
        for n, name in enumerate(schema.names)
    ]
    own = [name for name in changes.columns if name not in {*schema.names, KEEP, REASON}]
    return changes.join(found, F.expr(f"{OFFSET} = {_AT}"), "left").selectExpr(
        *columns,
        *own,
        f"IF({_AT} IS NULL, {KEEP}, NULL) AS {KEEP}",
        f"coalesce({REASON}, IF({lost}, {spark_string(NO_OLD_ROW)}, NULL)) AS {REASON}",
    )
