"""What Spark itself may write of a run into the job's log: no word of an engine about data.

Spark's messages quote values of rows (a cast that fails, a task that is lost, generated code), and
so do the texts of its exceptions. Each line is one JSON object like those of the job, made of
names (cdc/observe/java_log.py); its message is there only where the logger is of a part that never
sees a row.
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
"""Loggers of parts that handle bytes, blocks and names, not rows."""
_OF_QUERIES: Final = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_USERS_OWN: Final = "log4j2.configurationFile"


def quieten(spark: SparkSession, folder: Path, *, to: Path | None = None) -> None:
    """Have the JVM write its log so, to its stderr or to a file.

    A configuration of the user's own (``-Dlog4j2.configurationFile``) stays. pyspark's own loggers,
    which write each error of a query with its text, are shut.
    """
    for name in _OF_QUERIES:
        PySparkLogger.getLogger(name).disabled = True
    jvm: Any = spark._jvm  # noqa: SLF001 - the only way to its logging
    if jvm.java.lang.System.getProperty(_USERS_OWN):
        return
    level = spark.conf.get("spark.log.level", "WARN") or "WARN"
    appender = {"type": "Console", "target": "SYSTEM_ERR"}
    if to is not None:
        appender = {"type": "File", "fileName": str(to)}
    speaking = dict.fromkeys(_SPEAKING, level)
    path = folder / "log4j2.properties"
    path.write_text(configuration(level=level, speaking=speaking, appender=appender))
    uri = jvm.java.net.URI.create(path.resolve().as_uri())
    jvm.org.apache.logging.log4j.core.config.Configurator.reconfigure(uri)
