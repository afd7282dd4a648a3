"""Recognizes plans that Spark or Delta refuses: such an error affects one table only."""

from typing import Final

from py4j.java_gateway import is_instance_of  # type: ignore[import-untyped]
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import AnalysisException

_REFUSAL: Final = "org.apache.spark.sql.AnalysisException"


def refused_plan(error: BaseException | None) -> str | None:
    """Return the error condition that the engine names; None if no plan was refused.

    PySpark asks Spark for the message of a condition when it converts the exception. Spark does
    not know Delta's conditions: then another error is raised, with the original one as its context.
    """
    while error is not None:
        if isinstance(error, AnalysisException):
            return error.getCondition() or type(error).__name__
        if isinstance(error, Py4JJavaError) and _refuses(error.java_exception):
            return str(error.java_exception.getCondition())
        error = error.__context__
    return None


def _refuses(java: object) -> bool:
    return bool(is_instance_of(SparkContext._gateway, java, _REFUSAL))  # noqa: SLF001
