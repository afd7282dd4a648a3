"""Configures what Spark writes to the job's log, so that no row values appear in it.

Spark's messages quote values of rows (a failed cast, a lost task, generated code), and so do the
texts of its exceptions. Each line is one JSON object, as in the job's own log, and consists of
names (cdc/observe/java_log.py). It includes the message only if the logger belongs to a component
that never sees a row.
"""

from pathlib import Path
from typing import Any, Final

from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from cdc.observe.java_log import configuration

_SPEAKING: Final = (
    "org.apache.hadoop",
    "org.apache.kafka",
    "org.apache.spark.SparkContext",
    "org.apache.spark.SparkEnv",
    "org.apache.spark.memory",
    "org.apache.spark.network",
    "org.apache.spark.rpc",
    "org.apache.spark.sql.execution.streaming.ProcessingTimeExecutor",
    "org.apache.spark.util.ShutdownHookManager",
)
"""Loggers of components that handle bytes, blocks and names, but no rows."""
_OF_PLANS: Final = "org.apache.spark.util.SparkStringUtils"
"""Warns that the text of a long plan was cut, which nobody reads."""
_OF_QUERIES: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_USERS_OWN: Final = "log4j2.configurationFile"


def quieten(spark: SparkSession, folder: Path, *, to: Path | None = None) -> None:
    """Make the JVM log this way, to its stderr or to the file ``to``.

    Writes the Log4j configuration into ``folder``. The user's own configuration
    (``-Dlog4j2.configurationFile``) stays in force. pyspark's own loggers, which write the text of
    each failed query, are always disabled.
    """
    for name in _OF_QUERIES:
        PySparkLogger.getLogger(name).disabled = True
    jvm: Any = spark._jvm  # noqa: SLF001 - the only way to configure its logging
    if jvm.java.lang.System.getProperty(_USERS_OWN):
        return
    level = spark.conf.get("spark.log.level", "WARN") or "WARN"
    appender = {"type": "Console", "target": "SYSTEM_ERR"}
    if to is not None:
        appender = {"type": "File", "fileName": str(to)}
    speaking = dict.fromkeys(_SPEAKING, level) | {_OF_PLANS: "ERROR"}
    path = folder / "log4j2.properties"
    path.write_text(configuration(level=level, speaking=speaking, appender=appender))
    uri = jvm.java.net.URI.create(path.resolve().as_uri())
    jvm.org.apache.logging.log4j.core.config.Configurator.reconfigure(uri)
