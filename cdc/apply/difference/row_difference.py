"""Finds how rows read from the source differ from the lake's rows at the same cut.

The result has one row per difference, in the form a MERGE takes: the table's columns, our own,
whether the row is deleted, and the kind of difference. Two rows are equal if all values are equal
bit for bit (``row_hash``).
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.changes.reduce import HELD, NET, multiset_rows
from cdc.events.schema import TableSchema
from cdc.events.values.sql_text import spark_name, spark_string
from cdc.lake.table.merge_plan import COPY, DELETED, OFFSET, ROW_HASH
from cdc.lake.table.row_hash import row_hash
from cdc.tables import TableMode

KIND: Final = "_cdc_kind"
ADDED: Final = "added"
CHANGED: Final = "changed"
SWEPT: Final = "swept"  # the lake has the row, but the source does not

_READ: Final = "_cdc_read"
_KIND_OF_PAIR: Final = (
    f"CASE WHEN {HELD} IS NULL THEN {spark_string(ADDED)} WHEN {_READ} IS NULL "
    f"THEN {spark_string(SWEPT)} WHEN {HELD} <> {_READ} THEN {spark_string(CHANGED)} END"
)
"""SQL over a key's row hash in the lake and as it was read; null where the two are equal."""


def unlike(read: DataFrame, held: DataFrame, schema: TableSchema, offset: int) -> DataFrame:
    """Return the rows in which ``read`` differs from ``held``.

    ``read`` has the table's columns; ``held`` is the lake's table, or the part of it to compare.
    ``offset``, that of the cut, becomes the offset of every row of the result.
    """
    if schema.mode is TableMode.MULTISET:
        return _copies(read, held, schema, offset)
    return _rows(read, held, schema, offset)


def whole_rows(read: DataFrame, schema: TableSchema, offset: int) -> DataFrame:
    """Return rows with our own columns added, for a table that is written anew."""
    rows = read.selectExpr(*map(spark_name, schema.names), f"{offset}L AS {OFFSET}")
    if schema.mode is not TableMode.MULTISET:
        return rows
    hashed = rows.selectExpr("*", f"{row_hash(schema)} AS {ROW_HASH}")
    numbered = f"row_number() OVER (PARTITION BY {ROW_HASH} ORDER BY {OFFSET})"
    return hashed.selectExpr("*", f"CAST({numbered} AS bigint) AS {COPY}")


def keys_of(rows: DataFrame, schema: TableSchema) -> DataFrame:
    """Return the key columns of the rows."""
    return rows.selectExpr(*map(spark_name, schema.key))


def at_keys(rows: DataFrame, keys: DataFrame, schema: TableSchema) -> DataFrame:
    """Return the rows whose key is among ``keys``."""
    return _joined(rows, keys, schema, "left_semi")


def at_other_keys(rows: DataFrame, keys: DataFrame, schema: TableSchema) -> DataFrame:
    """Return the rows whose key is not among ``keys``."""
    return _joined(rows, keys, schema, "left_anti")


def _joined(rows: DataFrame, keys: DataFrame, schema: TableSchema, how: str) -> DataFrame:
    same = " AND ".join(f"one.{spark_name(k)} = other.{spark_name(k)}" for k in schema.key)
    return rows.alias("one").join(keys.alias("other"), F.expr(same), how)


def _rows(read: DataFrame, held: DataFrame, schema: TableSchema, offset: int) -> DataFrame:
    source = read.selectExpr(*map(spark_name, schema.names), f"{row_hash(schema)} AS {_READ}")
    keys = [f"{spark_name(name)} AS _cdc_key_{n}" for n, name in enumerate(schema.key)]
    lake = held.selectExpr(*keys, f"{row_hash(schema)} AS {HELD}")
    same = " AND ".join(f"{spark_name(name)} = _cdc_key_{n}" for n, name in enumerate(schema.key))
    key_of = {
        name: f"coalesce({spark_name(name)}, _cdc_key_{n})" for n, name in enumerate(schema.key)
    }
    joined = source.join(lake, F.expr(same), "full")
    return (
        joined.selectExpr("*", f"{_KIND_OF_PAIR} AS {KIND}")
        .where(f"{KIND} IS NOT NULL")
        .selectExpr(
            *(
                f"{key_of.get(name, spark_name(name))} AS {spark_name(name)}"
                for name in schema.names
            ),
            f"{offset}L AS {OFFSET}",
            f"{KIND} = {spark_string(SWEPT)} AS {DELETED}",
            KIND,
        )
    )


def _copies(read: DataFrame, held: DataFrame, schema: TableSchema, offset: int) -> DataFrame:
    columns = ", ".join(map(spark_name, schema.names))
    rows = f"first(struct({columns}))"
    hashed = read.selectExpr(*map(spark_name, schema.names), f"{row_hash(schema)} AS {ROW_HASH}")
    source = hashed.groupBy(ROW_HASH).agg(F.expr(f"count(*) AS {_READ}"), F.expr(f"{rows} AS new"))
    lake = held.groupBy(ROW_HASH).agg(F.expr(f"count(*) AS {HELD}"), F.expr(f"{rows} AS old"))
    net = f"coalesce({_READ}, 0L) - coalesce({HELD}, 0L)"
    unequal = (
        source.join(lake, ROW_HASH, "full")
        .selectExpr("coalesce(new, old) AS row", ROW_HASH, f"{net} AS {NET}")
        .where(f"{NET} <> 0")
        .selectExpr("row.*", ROW_HASH, NET, f"{offset}L AS {OFFSET}")
    )
    kind = f"IF({DELETED}, {spark_string(SWEPT)}, {spark_string(ADDED)}) AS {KIND}"
    merged = multiset_rows(unequal, lake.select(ROW_HASH, HELD), schema)
    names = [*map(spark_name, schema.names), OFFSET, ROW_HASH, COPY, DELETED]
    return merged.selectExpr(*names, kind)
