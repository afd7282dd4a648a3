"""Applies one step of a structure change to a Delta table; each commit holds a position.

A step that an interrupted run has already applied, but not recorded, is recognized and skipped.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog
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
from cdc.events.values.sql_text import spark_name, spark_string
from cdc.failpoints import Failpoint, reach
from cdc.lake.alter.alter import ATTEMPTS, adding, alter
from cdc.lake.alter.rewrite import rewrite_without_spark
from cdc.lake.alter.rewriting import Cast, Filled, Rehashed, Rewriting
from cdc.lake.commit.alteration import AllowFeature, Alteration, SetProperties
from cdc.lake.commit.data_file import arrow_type
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.create.table import described
from cdc.lake.own_session import AnySession, OwnSession
from cdc.lake.table import store
from cdc.lake.table.merge_plan import COPY, OFFSET, ROW_HASH
from cdc.lake.table.positions import KEY_PROPERTY, METADATA_CONF, position
from cdc.lake.table.row_hash import row_hash
from cdc.tables import TableMode
from cdc.waiting import again_on_conflict

logger = structlog.get_logger(__name__)
CommitAction = Callable[[str], object]
"""One commit; it receives the position, as text for the commit."""
_LITERALS: Final[dict[str, Callable[[str], str]]] = {
    "boolean": lambda text: "true" if text in {"t", "true"} else "false",
    "binary": lambda text: f"X'{text.removeprefix(chr(92) + 'x')}'",
    "string": spark_string,
}


def take_step(
    session: AnySession, path: str, schema: TableSchema, step: Step, metadata: str
) -> TableSchema:
    """Apply a step to the table at ``path`` and return the table's schema after it.

    Spark is asked where the rows of a large table are rewritten, and for tables that only it may
    alter. ``schema`` is the one before the step; ``metadata`` is the position of the last commit.
    Raises TABLE_STOPPED for a step that a Delta table cannot follow.
    """
    table = _Table(OwnSession.of(session), path)
    match step:
        case RenameColumn(old, new):
            evolved, commits = _renamed(table, schema, old, new)
        case DropColumn(name):
            evolved, commits = _dropped(table, schema, name)
        case AddColumn(column, value):
            evolved, commits = _added(table, schema, column, value)
        case WidenColumn(name, kind):
            evolved = _with_type(schema, name, kind)
            widened = Column(name, kind)
            commits = [*table.allowing([widened]), table.cast(widened)]
        case ChangeKey(key):
            evolved = replace(schema, key=key)
            commits = [table.keyed_by(key)]
        case _:
            raise CdcError(
                ErrorKind.TABLE_STOPPED,
                f"the lake's table cannot follow this change: {type(step).__name__}",
                remedy=f"undo it in the source, or {READ_AGAIN}",
            )
    _commit(path, commits, metadata)
    return evolved


@dataclass(frozen=True, slots=True)
class _Table:
    """Offers the commits of which the steps are made."""

    session: OwnSession
    path: str

    def altered(self, change: Alteration) -> CommitAction:
        return lambda metadata: alter(self.session, self.path, change, metadata)

    def keyed_by(self, key: Sequence[str]) -> CommitAction:
        return self.altered(SetProperties({KEY_PROPERTY: json.dumps(list(key))}))

    def allowing(self, columns: Sequence[Column]) -> list[CommitAction]:
        """Return what has to come before the first columns of such types."""
        return [self.altered(AllowFeature(name)) for name in store.features(columns)]

    def adding(self, columns: Sequence[Column]) -> list[CommitAction]:
        """Add columns; older rows have null in them."""
        return [*self.allowing(columns), self.altered(adding(columns))]

    def filled(self, column: Column, value: str) -> CommitAction:
        """Set the column in every row, to Postgres's text of a value."""
        literal = spark_literal(value, column.type)

        def fill(spark: SparkSession, metadata: str) -> None:
            spark.conf.set(METADATA_CONF, metadata)
            store.set_everywhere(spark, self.path, {column.name: literal})

        return self.rewritten(Filled(column, value), fill)

    def cast(self, column: Column) -> CommitAction:
        """Rewrite all rows, because a Parquet file fixes the type of its columns."""
        (field,) = described(store.listed(column))

        def rewrite(spark: SparkSession, metadata: str) -> None:
            rows = spark.read.format("delta").load(self.path)
            values = F.col(spark_name(column.name)).cast(column.type)
            store.rewrite(rows.withColumn(column.name, values), self.path, metadata)

        return self.rewritten(Cast(column, arrow_type(field["type"])), rewrite)

    def rewritten(
        self, change: Rewriting, by_spark: Callable[[SparkSession, str], None]
    ) -> CommitAction:
        """Rewrite all rows: those of a small table here, any others by Spark."""

        def rewrite(metadata: str) -> None:
            try:
                again_on_conflict(ATTEMPTS)(rewrite_without_spark, self.path, change, metadata)
            except TakeMergeError as why:
                logger.info("left to spark", path=self.path, reason=why.reason)
                by_spark(self.session.get(), metadata)

        return rewrite


def _commit(path: str, commits: Sequence[CommitAction], metadata: str) -> None:
    """Only the last commit records the step as done: the process may end after any earlier one."""
    reached = position(path)
    before = metadata if reached is None else reached.metadata()
    for number, commit in enumerate(commits, start=1):
        recorded = metadata if number == len(commits) else before
        reach(Failpoint.BEFORE_STRUCTURE_STEP)
        commit(recorded)
        reach(Failpoint.AFTER_STRUCTURE_STEP)


def rehash_rows(session: AnySession, path: str, schema: TableSchema, metadata: str) -> None:
    """Recompute row hashes and copy numbers of a table without a key, for its new columns.

    Does nothing to other tables.
    """
    if schema.mode is not TableMode.MULTISET:
        return

    def rehash(spark: SparkSession, metadata: str) -> None:
        names = [spark_name(name) for name in schema.names]
        numbered = f"row_number() OVER (PARTITION BY {ROW_HASH} ORDER BY {OFFSET})"
        rows = spark.read.format("delta").load(path)
        hashed = rows.selectExpr(*names, OFFSET, f"{row_hash(schema)} AS {ROW_HASH}")
        copies = hashed.selectExpr("*", f"CAST({numbered} AS bigint) AS {COPY}")
        store.rewrite(copies, path, metadata)

    reach(Failpoint.BEFORE_REHASH)
    _Table(OwnSession.of(session), path).rewritten(Rehashed(schema), rehash)(metadata)
    reach(Failpoint.AFTER_REHASH)


def _renamed(
    table: _Table, schema: TableSchema, old: str, new: str
) -> tuple[TableSchema, list[CommitAction]]:
    commits: list[CommitAction] = []
    if old in schema.names:
        commits.append(table.altered(RenameColumn(old, new)))
    key = tuple(new if name == old else name for name in schema.key)
    if key != schema.key:
        commits.append(table.keyed_by(key))
    columns = tuple(replace(c, name=new) if c.name == old else c for c in schema.columns)
    return replace(schema, columns=columns, key=key), commits


def _dropped(
    table: _Table, schema: TableSchema, name: str
) -> tuple[TableSchema, list[CommitAction]]:
    is_there = name in schema.names
    commits = [table.altered(DropColumn(name))] if is_there else []
    return replace(schema, columns=tuple(c for c in schema.columns if c.name != name)), commits


def _added(
    table: _Table, schema: TableSchema, column: Column, value: str | None
) -> tuple[TableSchema, list[CommitAction]]:
    commits: list[CommitAction] = []
    if column.name not in schema.names:
        schema = replace(schema, columns=(*schema.columns, column))
        commits += table.adding([column])
    if value is not None:
        commits.append(table.filled(column, value))
    return schema, commits


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


def add_columns(session: AnySession, path: str, columns: Sequence[Column], metadata: str) -> None:
    """Add columns to the table, with a position; existing rows have NULL in them."""
    for commit in _Table(OwnSession.of(session), path).adding(columns):
        commit(metadata)
