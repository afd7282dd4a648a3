"""Applies one step of a structure change to a Delta table; each commit holds a position.

A step that an interrupted run has already applied, but not recorded, is recognized and skipped.
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

CommitAction = Callable[[str], object]
"""One commit; it receives the metadata, which is also set in the session."""
_LITERALS: Final[dict[str, Callable[[str], str]]] = {
    "boolean": lambda text: "true" if text in {"t", "true"} else "false",
    "binary": lambda text: f"X'{text.removeprefix(chr(92) + 'x')}'",
    "string": spark_string,
}


def take_step(
    spark: SparkSession, path: str, schema: TableSchema, step: Step, metadata: str
) -> TableSchema:
    """Apply a step to the table at ``path`` and return the table's schema after it.

    ``schema`` is the one before the step; ``metadata`` is the position of the last commit.
    Raises TABLE_STOPPED for a step that a Delta table cannot follow.
    """
    match step:
        case RenameColumn(old, new):
            evolved, commits = _renamed(spark, path, schema, old, new)
        case DropColumn(name):
            evolved, commits = _dropped(spark, path, schema, name)
        case AddColumn(column, value):
            evolved, commits = _added(spark, path, schema, column, value)
        case WidenColumn(name, kind):
            evolved = _with_type(schema, name, kind)
            commits = _widened(spark, path, Column(name, kind))
        case ChangeKey(key):
            evolved = replace(schema, key=key)
            commits = [lambda _: store.set_key(spark, path, key)]
        case _:
            raise CdcError(
                ErrorKind.TABLE_STOPPED,
                f"the lake's table cannot follow this change: {type(step).__name__}",
                remedy=f"undo it in the source, or {READ_AGAIN}",
            )
    _commit(spark, path, commits, metadata)
    return evolved


def _commit(spark: SparkSession, path: str, commits: Sequence[CommitAction], metadata: str) -> None:
    """Only the last commit records the step as done: the process may end after any earlier one."""
    reached = position(path)
    before = metadata if reached is None else reached.metadata()
    for number, commit in enumerate(commits, start=1):
        recorded = metadata if number == len(commits) else before
        spark.conf.set(METADATA_CONF, recorded)
        reach(Failpoint.BEFORE_STRUCTURE_STEP)
        commit(recorded)
        reach(Failpoint.AFTER_STRUCTURE_STEP)


def rehash_rows(spark: SparkSession, path: str, schema: TableSchema, metadata: str) -> None:
    """Recompute row hashes and copy numbers of a table without a key, for its new columns.

    Does nothing to other tables.
    """
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
) -> tuple[TableSchema, list[CommitAction]]:
    commits: list[CommitAction] = []
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
) -> tuple[TableSchema, list[CommitAction]]:
    commits: list[CommitAction] = []
    if name in schema.names:
        statement = f"ALTER TABLE {spark_delta(path)} DROP COLUMN {spark_name(name)}"
        commits.append(lambda _: spark.sql(statement))
    return replace(schema, columns=tuple(c for c in schema.columns if c.name != name)), commits


def _added(
    spark: SparkSession, path: str, schema: TableSchema, column: Column, value: str | None
) -> tuple[TableSchema, list[CommitAction]]:
    commits: list[CommitAction] = []
    if column.name not in schema.names:
        schema = replace(schema, columns=(*schema.columns, column))
        commits += _allowed(spark, path, column)
        commits.append(lambda _: store.add(spark, path, (column,)))
    if value is not None:
        literal = spark_literal(value, column.type)
        commits.append(lambda _: store.set_everywhere(spark, path, {column.name: literal}))
    return schema, commits


def _widened(spark: SparkSession, path: str, column: Column) -> list[CommitAction]:
    """All rows are rewritten, because a Parquet file fixes the type of its columns."""

    def rewrite(metadata: str) -> None:
        rows = spark.read.format("delta").load(path)
        values = F.col(spark_name(column.name)).cast(column.type)
        store.rewrite(rows.withColumn(column.name, values), path, metadata)

    return [*_allowed(spark, path, column), rewrite]


def _allowed(spark: SparkSession, path: str, column: Column) -> list[CommitAction]:
    needed = store.features((column,))
    return [lambda _: store.set_properties(spark, path, needed)] if needed else []


def _with_type(schema: TableSchema, name: str, kind: str) -> TableSchema:
    columns = tuple(replace(c, type=kind) if c.name == name else c for c in schema.columns)
    return replace(schema, columns=columns)


def spark_literal(text: str, kind: str) -> str:
    """Return a SQL literal of the lake's type ``kind`` for Postgres's text of a value.

    Raises TABLE_STOPPED for an array that is not empty: array elements are not parsed here.
    """
    if kind.startswith("array<"):
        if text != "{}":
            raise CdcError(
                ErrorKind.TABLE_STOPPED,
                "a new column has a non-empty array as the value of existing rows",
                remedy=READ_AGAIN,
            )
        return f"CAST(array() AS {kind})"
    if kind in _LITERALS:
        return _LITERALS[kind](text)
    return f"CAST({spark_string(text)} AS {kind})"
