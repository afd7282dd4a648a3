"""Verify derived tables by Spark: another engine calculates, over a reader of its own.

Spark reads the inputs and the table at the versions of a cut, and compares what its query gives
with the stored rows; DuckDB and delta-rs have no part in it.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own convention
from pyspark.sql.types import DecimalType, IntegralType, StructType

from cdc.client.derived.at_cut import definitions, input_at, published_row
from cdc.client.derived.verify import DerivedReport, DerivedVerdict, chosen, entry_at, no_sql
from cdc.config import Config
from cdc.derive.definition.definition import Definition
from cdc.derive.engine.input import Input
from cdc.derive.engine.spark_query import calculated, read_at, refusal, sayable
from cdc.events.values.sql_text import spark_name
from cdc.lake.layout import is_local
from cdc.lake.records.ledger import LedgerRow
from cdc.lake.session import IN_COMMANDS, build
from cdc.lake.upkeep.held import held
from cdc.stack.artifacts import class_archive
from cdc.stack.artifacts.lock_file import spark_jars
from cdc.tables import TableId

_COUNT: Final = "_cdc_count"
_WANTED: Final = "_cdc_wanted"
Inputs = Mapping[TableId, Input]


def verify_by_spark(config: Config, names: Sequence[str], at: str | None) -> DerivedReport:
    """Let Spark calculate the tables at the cut, and compare; without names, all of them.

    The session is one of this process, with the settings of the job's.
    """
    with held(config.lake.path):
        row = published_row(config, at)
        tables = chosen(definitions(config, row), names)
        with _session(config) as session:
            verdicts = [_verdict(session, row, one) for one in tables]
    return DerivedReport(cut=row.cut, witness="spark", tables=verdicts)


@contextmanager
def _session(config: Config) -> Iterator[SparkSession]:
    jars = spark_jars(objects=not is_local(config.lake.path))
    archive = class_archive.existing("job", class_archive.spark_class_path(jars))
    session = build(config, jars, archive.flags, log_level=IN_COMMANDS)
    try:
        yield session
    finally:
        session.stop()


def _verdict(session: SparkSession, row: LedgerRow, definition: Definition) -> DerivedVerdict:
    entry = entry_at(row, definition)
    if isinstance(entry, str):
        return DerivedVerdict(table=str(definition.table), reason=entry)
    inputs = {table: input_at(table, row) for table in definition.inputs}
    return compare_in_spark(session, definition, inputs, Input.of(entry))


def compare_in_spark(
    session: SparkSession, definition: Definition, inputs: Inputs, stored: Input
) -> DerivedVerdict:
    """Compare what the query gives over the inputs with the stored rows, as multisets.

    What Spark refuses, or cannot say with the meaning of a definition, is the verdict's reason.
    """
    name = str(definition.table)
    query = sayable(definition)
    if query is None:
        return DerivedVerdict(table=name, reason=no_sql("Spark", definition))
    try:
        wanted = calculated(session, query, inputs)
        found = read_at(wanted.sparkSession, stored).select(*map(spark_name, definition.columns))
        if reason := _other_types(wanted.schema, found.schema):
            wanted.write.format("noop").mode("overwrite").save()  # a guard says more, if one raises
            return DerivedVerdict(table=name, reason=reason)
        rows, missing, extra = _counted(wanted, found)
    except PySparkException as error:
        return DerivedVerdict(table=name, reason=refusal(error))
    return DerivedVerdict(table=name, rows=rows, missing=missing, extra=extra)


def _other_types(wanted: StructType, found: StructType) -> str:
    """Return a column whose type would make Spark convert one side; sizes of numbers may differ."""
    for ours, theirs in zip(wanted, found, strict=True):
        numbers = all(
            isinstance(one.dataType, DecimalType | IntegralType) for one in (ours, theirs)
        )
        if ours.dataType != theirs.dataType and not numbers:
            kinds = f"{ours.dataType.simpleString()} in Spark"
            return f"{theirs.name} is {kinds} and {theirs.dataType.simpleString()} in the lake"
    return ""


def _counted(wanted: DataFrame, found: DataFrame) -> tuple[int, int, int]:
    """Return how many rows are wanted, missing and extra: EXCEPT ALL both ways in one pass."""
    columns = [*map(spark_name, found.columns)]
    ours = wanted.toDF(*found.columns).withColumn(_COUNT, F.lit(1))
    both = ours.unionAll(found.withColumn(_COUNT, F.lit(-1)))
    wants = F.sum(F.when(F.col(_COUNT) > 0, 1).otherwise(0)).alias(_WANTED)
    groups = both.groupBy(*columns).agg(F.sum(_COUNT).alias(_COUNT), wants)
    more, less = F.greatest(_COUNT, F.lit(0)), F.greatest(-F.col(_COUNT), F.lit(0))
    (sums,) = groups.agg(F.sum(_WANTED), F.sum(more), F.sum(less)).collect()
    rows, missing, extra = (int(value or 0) for value in sums)
    return rows, missing, extra
