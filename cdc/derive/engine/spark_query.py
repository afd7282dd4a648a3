"""Lets Spark calculate a query over tables of the lake, each at one version."""

import re
from collections.abc import Mapping
from typing import Final

from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from sqlglot import exp

from cdc.derive.definition.definition import Definition
from cdc.derive.engine.input import Input
from cdc.derive.spark.guards import SETTINGS
from cdc.derive.spark.printing import spark
from cdc.events.names import OURS
from cdc.events.values.sql_text import spark_name
from cdc.tables import TableId

_RAISED: Final = "USER_RAISED_EXCEPTION"
_DETAIL: Final = re.compile(r"\[(?P<name>[A-Z0-9_.]+)\]")


def sayable(definition: Definition) -> exp.Query | None:
    """Return the query that Spark can be given; None for what only this process calculates."""
    return definition.query if definition.late is None else None


def calculated(
    session: SparkSession, query: exp.Query, inputs: Mapping[TableId, Input]
) -> DataFrame:
    """Return the rows of a definition's query, in a session of its own."""
    own = session.newSession()
    for setting, value in SETTINGS.items():
        own.conf.set(setting, value)
    for table, one in inputs.items():
        read_at(own, one).createOrReplaceTempView(spark_name(str(table)))
    return own.sql(spark(query))


def read_at(session: SparkSession, table: Input) -> DataFrame:
    """Return the rows of a table at its version, without wal2lake's own columns."""
    rows = session.read.format("delta").option("versionAsOf", table.version).load(table.path)
    seen = (name for name in rows.columns if not name.startswith(OURS))
    return rows.select(*map(spark_name, seen))


def refusal(error: PySparkException | Py4JJavaError) -> str:
    """Say what Spark refuses. Its own text can contain values of rows."""
    condition, said = _named(error)
    if condition == _RAISED:
        return said.get("errorMessage", condition)
    return f"Spark refuses its query: {condition}"


def _named(error: PySparkException | Py4JJavaError) -> tuple[str, Mapping[str, str]]:
    if isinstance(error, Py4JJavaError):
        return _innermost(error.java_exception)
    named = error.getCondition() or next((m["name"] for m in _DETAIL.finditer(str(error))), "")
    return named or type(error).__name__, error.getMessageParameters() or {}


def _innermost(exception: JavaObject) -> tuple[str, Mapping[str, str]]:
    """Return what a failed write is due to: Spark wraps it in the failure of the write."""
    while (cause := exception.getCause()) is not None:
        exception = cause
    try:
        return str(exception.getCondition()), dict(exception.getMessageParameters())
    except Py4JError:  # it is none of Spark's
        return str(exception.getClass().getSimpleName()), {}
