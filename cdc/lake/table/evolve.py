"""One step of a table's structure, done on its Delta table; each commit holds a position.

A step that was done by a run that ended before it could say so is recognised and passed over.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import Column, TableSchema
from cdc.events.structure.steps import (
    READ_AGAIN,
    AddColumn,
    ChangeKey,
    DropColumn,
    RenameColumn,
    Step,
    WidenColumn,
)
from cdc.events.values.sql_text import spark_delta, spark_name, spark_string
from cdc.failpoints import Failpoint, reach
from cdc.lake.table import store
from cdc.lake.table.merge_plan import COPY, OFFSET, ROW_HASH
from cdc.lake.table.positions import METADATA_CONF, position
from cdc.lake.table.row_hash import row_hash
from cdc.tables import TableMode

Commit = Callable[[str], object]
"""One commit; it is given the metadata, which the session holds as well."""
_LITERALS: Final[dict[str, Callable[[str], str]]] = {
    "boolean": lambda text: "true" if text in {"t", "true"} else "false",
    "binary": lambda text: f"X'{text.removeprefix(chr(92) + 'x')}'",
    "string": spark_string,
}


def done(
    spark: SparkSession, path: str, schema: TableSchema, step: Step, metadata: str
) -> TableSchema:
    """The table's schema after the step, which is in the table when this returns.

    Raises TABLE_STOPPED for a step that no Delta table can follow.
    """
    match step:
        case RenameColumn(old, new):
            found, commits = _renamed(spark, path, schema, old, new)
        case DropColumn(name):
            found, commits = _dropped(spark, path, schema, name)
        case AddColumn(column, value):
            found, commits = _added(spark, path, schema, column, value)
        case WidenColumn(name, kind):
            found = _with_type(schema, name, kind)
            commits = _widened(spark, path, Column(name, kind))
        case ChangeKey(key):
            found = replace(schema, key=key)
            commits = [lambda _: store.set_key(spark, path, key)]
        case _:
            raise CdcError(
                ErrorKind.TABLE_STOPPED,
                f"the lake's table cannot follow this change: {type(step).__name__}",
                remedy=f"undo it in the source, or {READ_AGAIN}",
            )
    _commit(spark, path, commits, metadata)
    return found


def _commit(spark: SparkSession, path: str, commits: Sequence[Commit], metadata: str) -> None:
    """Only the last one says that the step is done: any other may be the last of this process."""
    reached = position(path)
    before = metadata if reached is None else reached.metadata()
    for number, commit in enumerate(commits, start=1):
        said = metadata if number == len(commits) else before
        spark.conf.set(METADATA_CONF, said)
        reach(Failpoint.BEFORE_STRUCTURE_STEP)
        commit(said)
        reach(Failpoint.AFTER_STRUCTURE_STEP)


def rehashed(spark: SparkSession, path: str, schema: TableSchema, metadata: str) -> None:
    """Of a table without a key: digests and copies of its rows under the new columns."""
    if schema.mode is not TableMode.MULTISET:
        return
    names = [spark_name(name) for name in schema.names]
    numbered = f"row_number() OVER (PARTITION BY {ROW_HASH} ORDER BY {OFFSET})"
    rows = spark.read.format("delta").load(path)
    hashed = rows.selectExpr(*names, OFFSET, f"{row_hash(schema)} AS {ROW_HASH}")
    copies = hashed.selectExpr("*", f"CAST({numbered} AS bigint) AS {COPY}")
    reach(Failpoint.BEFORE_REHASH)
    store.rewrite(copies, path, metadata)
    reach(Failpoint.AFTER_REHASH)


def _renamed(
    spark: SparkSession, path: str, schema: TableSchema, old: str, new: str
) -> tuple[TableSchema, list[Commit]]:
    commits: list[Commit] = []
    if old in schema.names:
        statement = (
            f"ALTER TABLE {spark_delta(path)} RENAME COLUMN {spark_name(old)} TO {spark_name(new)}"
        )
        commits.append(lambda _: spark.sql(statement))
    key = tuple(new if name == old else name for name in schema.key)
    if key != schema.key:
        commits.append(lambda _: store.set_key(spark, path, key))
    columns = tuple(replace(c, name=new) if c.name == old else c for c in schema.columns)
    return replace(schema, columns=columns, key=key), commits


def _dropped(
    spark: SparkSession, path: str, schema: TableSchema, name: str
) -> tuple[TableSchema, list[Commit]]:
    commits: list[Commit] = []
    if name in schema.names:
        statement = f"ALTER TABLE {spark_delta(path)} DROP COLUMN {spark_name(name)}"
        commits.append(lambda _: spark.sql(statement))
    return replace(schema, columns=tuple(c for c in schema.columns if c.name != name)), commits


def _added(
    spark: SparkSession, path: str, schema: TableSchema, column: Column, value: str | None
) -> tuple[TableSchema, list[Commit]]:
    commits: list[Commit] = []
    if column.name not in schema.names:
        schema = replace(schema, columns=(*schema.columns, column))
        commits += _allowed(spark, path, column)
        commits.append(lambda _: store.add(spark, path, (column,)))
    if value is not None:
        made = spark_literal(value, column.type)
        commits.append(lambda _: store.set_everywhere(spark, path, {column.name: made}))
    return schema, commits


def _widened(spark: SparkSession, path: str, column: Column) -> list[Commit]:
    """All rows are written again: the type of a Parquet column is that of its file."""

    def rewrite(metadata: str) -> None:
        rows = spark.read.format("delta").load(path)
        values = F.col(spark_name(column.name)).cast(column.type)
        store.rewrite(rows.withColumn(column.name, values), path, metadata)

    return [*_allowed(spark, path, column), rewrite]


def _allowed(spark: SparkSession, path: str, column: Column) -> list[Commit]:
    needed = store.features((column,))
    return [lambda _: store.set_properties(spark, path, needed)] if needed else []


def _with_type(schema: TableSchema, name: str, kind: str) -> TableSchema:
    columns = tuple(replace(c, type=kind) if c.name == name else c for c in schema.columns)
    return replace(schema, columns=columns)


def spark_literal(text: str, kind: str) -> str:
    """SQL text of a value of the lake's type, from Postgres's text of it.

    Raises TABLE_STOPPED for an array that is not empty: its elements are not taken apart here.
    """
    if kind.startswith("array<"):
        if text != "{}":
            raise CdcError(
                ErrorKind.TABLE_STOPPED,
                "a new column holds an array on rows that were there before",
                remedy=READ_AGAIN,
            )
        return f"CAST(array() AS {kind})"
    if kind in _LITERALS:
        return _LITERALS[kind](text)
    return f"CAST({spark_string(text)} AS {kind})"
