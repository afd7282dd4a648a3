"""Lets Spark calculate what is large; the rows wait in the lake for their commit.

Spark's workers can write there, and this process can read.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, DecimalType, IntegralType
from sqlglot import exp

from cdc.config import Config
from cdc.derive.definition.definition import Definition
from cdc.derive.engine.calculator import calculator
from cdc.derive.engine.input import Input
from cdc.derive.engine.inputs import declare
from cdc.derive.engine.large import NotBySparkError, Result, column
from cdc.derive.engine.output_types import Output, lake_field
from cdc.derive.engine.spark_query import calculated, refusal, sayable
from cdc.lake.layout import derived_aside_path
from cdc.lake.session import runs_here
from cdc.lake.table.deletion import delete_table
from cdc.tables import TableId

_TYPES_MB: Final = 64
"""Of memory, for finding the types of a query's columns."""
_SCALE: Final = re.compile(r"decimal\(\d+,(?P<scale>\d+)\)")
_WHOLE: Final = frozenset({"short", "integer", "long"})
_SIGNED: Final = frozenset({"float", "double"})
"""Spark groups 0 and -0 to 0, where the lake has what was there first; and it sums in any order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeQueries:
    """Calculates by Spark what has at least ``fewest`` rows in its inputs.

    ``folder`` is where results wait, one for each table; it may be deleted between two of them.
    """

    session: SparkSession
    folder: str
    fewest: int

    def takes(self, definition: Definition, count: int) -> bool:
        """Return whether Spark is to calculate this over so many rows."""
        return sayable(definition) is not None and count >= self.fewest

    @contextmanager
    def result(self, definition: Definition, inputs: Mapping[TableId, Input]) -> Iterator[Result]:
        """Give the rows of a query that Spark takes; they are deleted after the block.

        Raises NotBySparkError, and CONFIG for a query that does not fit its inputs.
        """
        outputs, path = _outputs(definition, inputs), f"{self.folder}/{definition.table}"
        try:
            with _refusing():
                found = calculated(self.session, _query(definition), inputs)
                _refuse_other_types(found, outputs)
                _write(found, path)
            yield Result(path, outputs)
        finally:
            delete_table(path)


def large_queries(config: Config, session: SparkSession) -> LargeQueries | None:
    """Return what Spark calculates by the configuration; None for nothing.

    What a job that was killed has left aside is deleted.
    """
    delete_table(folder := derived_aside_path(config))
    if config.derived.engine == "local":
        return None
    always = config.derived.engine == "spark" or not runs_here(config)
    fewest = 0 if always else config.derived.local_rows + 1
    return LargeQueries(session=session, folder=folder, fewest=fewest)


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise NotBySparkError(refusal(error)) from None


def _query(definition: Definition) -> exp.Query:
    query = sayable(definition)
    if query is None:
        raise NotBySparkError("Spark does not take it")
    return query


def _write(found: DataFrame, path: str) -> None:
    named = found.toDF(*map(column, range(len(found.columns))))
    named.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)


def _outputs(definition: Definition, inputs: Mapping[TableId, Input]) -> list[Output]:
    with calculator(_TYPES_MB) as empty:
        declare(empty, inputs)
        return empty.outputs(definition.duckdb)


def _refuse_other_types(found: DataFrame, outputs: Sequence[Output]) -> None:
    """Refuse a column whose values would not be, bit for bit, what they are if calculated here."""
    for field, output in zip(found.schema, outputs, strict=True):
        kind = lake_field(output)["type"]
        if (kind if isinstance(kind, str) else kind["elementType"]) in _SIGNED:
            raise NotBySparkError(f"{output.name} is a float, and Spark may lose the sign of its 0")
        if not _fits(field.dataType, kind):
            theirs, ours = field.dataType.simpleString(), output.type.lower()
            raise NotBySparkError(f"{output.name} is {theirs} in Spark and {ours} here")


def _fits(theirs: DataType, ours: str | Mapping[str, str]) -> bool:
    if isinstance(ours, Mapping):
        return (
            isinstance(theirs, ArrayType) and theirs.elementType.jsonValue() == ours["elementType"]
        )
    scale = 0 if ours in _WHOLE else _scale(ours)
    if scale is None or not isinstance(theirs, DecimalType | IntegralType):
        return bool(theirs.jsonValue() == ours)
    return (theirs.scale if isinstance(theirs, DecimalType) else 0) <= scale


def _scale(kind: str) -> int | None:
    found = _SCALE.fullmatch(kind)
    return int(found["scale"]) if found else None
