"""Tell a plan that Spark or Delta refuses, which is one table's trouble, from any other error."""

from typing import Final

from py4j.java_gateway import is_instance_of  # type: ignore[import-untyped]
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import AnalysisException

_REFUSAL: Final = "org.apache.spark.sql.AnalysisException"


def refusal(error: BaseException | None) -> str | None:
    """The condition that the engine names; None where it is no refusal of a plan.

    PySpark asks Spark for the words of a condition as it makes an exception of it. Of Delta's
    Spark knows none, so that what is raised says this alone, and stands in the other's context.
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
