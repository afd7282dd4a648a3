"""Whether two tables hold the same rows, to the bit, and by how many they differ."""

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
    """``held`` is brought to ``made`` by adding, changing and sweeping so many rows."""

    rows: int  # of the one that was made
    added: int
    changed: int
    swept: int
    columns: tuple[str, ...] = ()  # those that only one of them has, or of another type

    @property
    def equal(self) -> bool:
        return not (self.added or self.changed or self.swept or self.columns)

    @property
    def words(self) -> str:
        if self.columns:
            return f"other columns: {', '.join(self.columns)}"
        return f"{self.added:,} rows more, {self.swept:,} fewer, {self.changed:,} otherwise"


def likeness(made: DataFrame, held: DataFrame, schema: TableSchema) -> Likeness:
    """``schema`` is that of ``made``; our own columns are not compared. Two Spark jobs."""
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
    found = joined.selectExpr(*counts).collect()[0]
    return Likeness(rows=found[0], added=found[1], changed=found[2], swept=found[3])


def _digests(frame: DataFrame, schema: TableSchema, side: str) -> DataFrame:
    """Key (or nothing), digest and number of the rows."""
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
