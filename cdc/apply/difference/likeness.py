"""Compares two tables bit for bit, and counts the rows in which they differ."""

from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.events.schema import TableSchema
from cdc.events.values.sql_text import spark_name
from cdc.lake.table.merge_plan import COPY, OFFSET, ROW_HASH
from cdc.lake.table.row_hash import row_hash

_DIGEST: Final = "_cdc_digest"
_SIDES: Final = ("_cdc_made", "_cdc_held")


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """Counts the rows to add, change and sweep to turn ``held`` into ``made``."""

    rows: int  # number of rows in ``made``
    added: int
    changed: int
    swept: int
    columns: tuple[str, ...] = ()  # columns that only one table has, or that differ in type

    @property
    def equal(self) -> bool:
        """Return whether both tables have the same columns and rows."""
        return not (self.added or self.changed or self.swept or self.columns)

    @property
    def words(self) -> str:
        """Return the difference in words, for messages."""
        if self.columns:
            return f"different columns: {', '.join(self.columns)}"
        return f"{self.added:,} more rows, {self.swept:,} fewer, {self.changed:,} different"


def likeness(made: DataFrame, held: DataFrame, schema: TableSchema) -> Likeness:
    """Compare ``made`` with ``held``, except for our own columns.

    ``schema`` is that of ``made``. If columns differ, rows are not compared. Takes two Spark jobs.
    """
    if columns := _unlike_columns(made, held):
        rows = made.count()
        return Likeness(rows=rows, added=0, changed=0, swept=0, columns=columns)
    identity = schema.key or (_DIGEST,)
    one, other = (
        _digests(frame, schema, side) for frame, side in zip((made, held), _SIDES, strict=True)
    )
    same = " AND ".join(f"one.{spark_name(name)} <=> other.{spark_name(name)}" for name in identity)
    joined = one.alias("one").join(other.alias("other"), F.expr(same), "full_outer")
    here, there = (f"coalesce({side}, 0L)" for side in _SIDES)
    more = f"sum(greatest({here} - {there}, 0L))"
    fewer = f"sum(greatest({there} - {here}, 0L))"
    changed = f"count_if(one.{_DIGEST} <> other.{_DIGEST})"
    counts = [f"coalesce({count}, 0L)" for count in (f"sum({here})", more, changed, fewer)]
    rows, added, changed_rows, swept = joined.selectExpr(*counts).collect()[0]
    return Likeness(rows=rows, added=added, changed=changed_rows, swept=swept)


def _digests(frame: DataFrame, schema: TableSchema, side: str) -> DataFrame:
    """Key (if there is one), digest, and the number of rows with that digest."""
    keys = [spark_name(name) for name in schema.key]
    digested = frame.selectExpr(*keys, f"{row_hash(schema)} AS {_DIGEST}")
    return digested.groupBy(*keys, _DIGEST).agg(F.count("*").alias(side))


def _unlike_columns(made: DataFrame, held: DataFrame) -> tuple[str, ...]:
    own = {OFFSET, ROW_HASH, COPY}
    one, other = (
        {(f.name, f.dataType.simpleString()) for f in frame.schema if f.name not in own}
        for frame in (made, held)
    )
    return tuple(sorted({name for name, _ in one ^ other}))
