"""The second half of a key's change: what it leaves out is in the row that the first half deleted.

Postgres logs one update, the connector sends a delete of the old key and, next in the topic, a
create of the new one. Large values that did not change are in neither. They are taken from what
the slice says of the old key, or from its row in the lake; where the old row came by such a change
itself (a chain, a swap), from where that one took them.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.merge_plan import KEEP, OFFSET, OP, REASON, quoted
from cdc.apply.order import SINCE, is_kept, kept_columns, known
from cdc.apply.values import literal
from cdc.events.schema import TableSchema

NO_OLD_ROW = "its key was changed, and the row that holds its unchanged values is not there"


def resolve(changes: DataFrame, target: DataFrame, schema: TableSchema) -> DataFrame:
    """The changes with every create made whole; one that cannot be gets a ``_cdc_reason``.

    ``target`` is the lake's table before these changes.
    """
    marked = kept_columns(schema)
    found = _from_old_row(changes, target, schema).localCheckpoint()
    while not found.where("source IS NOT NULL").isEmpty():
        found = _one_step_back(found, marked).localCheckpoint()
    return _filled(changes, found, schema)


def _from_old_row(changes: DataFrame, target: DataFrame, schema: TableSchema) -> DataFrame:
    """One row per such create (``at``): its values, ``source``: another create that has the rest.

    A value is a struct of one field, so that a null that is known differs from an unknown.
    """
    halves = _halves(changes).localCheckpoint()
    deleted = known(_of_old_keys(changes, halves, schema), schema, upto="1 PRECEDING")
    deleted = deleted.where(f"{OP} = 'd' AND {REASON} IS NULL")
    halves = halves.join(deleted.withColumnRenamed(OFFSET, "gone"), "gone", "left")
    same = " AND ".join(f"half.{quoted(k)} = target.{quoted(k)}" for k in schema.key)
    joined = halves.alias("half").join(target.alias("target"), F.expr(same), "left")
    values = [
        f"CASE WHEN _cdc_known_{n}.at >= {SINCE} THEN struct(_cdc_known_{n}.value AS value) "
        f"WHEN {SINCE} < 0 AND target.{OFFSET} IS NOT NULL "
        f"THEN struct(target.{quoted(schema.names[n])} AS value) END AS value_{n}"
        for n in kept_columns(schema)
    ]
    chained = f"IF({SINCE} >= 0 AND {SINCE} = _cdc_full, _cdc_full, NULL) AS source"
    return joined.selectExpr("at", chained, *values)


def _of_old_keys(changes: DataFrame, halves: DataFrame, schema: TableSchema) -> DataFrame:
    """Only events of keys that such a delete is about: the others may be many, and are wide."""
    gone = halves.select(F.col("gone").alias(OFFSET))
    keys = changes.select(OFFSET, *map(quoted, schema.key)).join(gone, OFFSET)
    same = " AND ".join(f"change.{quoted(k)} = gone.{quoted(k)}" for k in schema.key)
    one_each = keys.drop(OFFSET).distinct()
    return changes.alias("change").join(one_each.alias("gone"), F.expr(same), "left_semi")


def _halves(changes: DataFrame) -> DataFrame:
    """Such creates, with the offset of the delete that comes directly before (``gone``)."""
    # One partition, of three small columns; without the word Spark warns of it at every step.
    over = f"OVER (PARTITION BY {OFFSET} < 0 ORDER BY {OFFSET})"
    before = f"lag(struct({OFFSET} AS at, {OP} AS op)) {over} AS before"
    places = changes.selectExpr(OFFSET, OP, f"{KEEP} IS NOT NULL AND {REASON} IS NULL AS waits")
    return (
        places.selectExpr("*", before)
        .where(f"waits AND {OP} = 'c'")
        .selectExpr(f"{OFFSET} AS at", "IF(before.op = 'd', before.at, NULL) AS gone")
    )


def _one_step_back(found: DataFrame, marked: list[int]) -> DataFrame:
    """Each takes what it lacks from its source, and the source's source; offsets only fall."""
    values = [f"coalesce(half.value_{n}, source.value_{n}) AS value_{n}" for n in marked]
    same = F.expr("half.source = source.at")
    joined = found.alias("half").join(found.alias("source"), same, "left")
    return joined.selectExpr("half.at AS at", "source.source AS source", *values)


def _filled(changes: DataFrame, found: DataFrame, schema: TableSchema) -> DataFrame:
    marked = kept_columns(schema)
    taken = {n: f"(at IS NOT NULL AND {is_kept(n)})" for n in marked}
    lost = " OR ".join(f"({taken[n]} AND value_{n} IS NULL)" for n in marked)
    columns = [
        f"IF({taken[n]}, value_{n}.value, {quoted(name)}) AS {quoted(name)}"
        if n in taken
        else quoted(name)
        for n, name in enumerate(schema.names)
    ]
    own = [name for name in changes.columns if name not in {*schema.names, KEEP, REASON}]
    return changes.join(found, F.expr(f"{OFFSET} = at"), "left").selectExpr(
        *columns,
        *own,
        f"IF(at IS NULL, {KEEP}, NULL) AS {KEEP}",
        f"coalesce({REASON}, IF({lost}, {literal(NO_OLD_ROW)}, NULL)) AS {REASON}",
    )
