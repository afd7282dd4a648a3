"""What Spark itself may write of a run into the job's log: no word of an engine about data.

Spark's messages quote values of rows (a cast that fails, a task that is lost, generated code), and
so do the texts of its exceptions. Each line is one JSON object like those of the job, made of
names: the logger, the classes of the exception and of its root cause, and where they were raised.
Its message is there only where the logger is of a part that never sees a row.
"""

import json
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

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
_FRAME: Final = {
    name: {"$resolver": "stackTraceElement", "field": field}
    for name, field in (("class", "className"), ("method", "methodName"), ("line", "lineNumber"))
}
_QUIET: Final[dict[str, Any]] = {
    "level": {"$resolver": "level", "field": "name"},
    "timestamp": {
        "$resolver": "timestamp",
        "pattern": {"format": "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "timeZone": "UTC"},
    },
    "logger": {"$resolver": "logger", "field": "name"},
    "exception": {"$resolver": "exception", "field": "className"},
    "raised_at": {"$resolver": "exception", "field": "stackTrace"},
    "root": {"$resolver": "exceptionRootCause", "field": "className"},
    "root_raised_at": {"$resolver": "exceptionRootCause", "field": "stackTrace"},
}
_USERS_OWN: Final = "log4j2.configurationFile"


def quieten(spark: SparkSession, folder: Path, *, to: Path | None = None) -> None:
    """Have the JVM write its log so, to its stderr or to a file.

    A configuration of the user's own (``-Dlog4j2.configurationFile``) stays.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - the only way to its logging
    if jvm.java.lang.System.getProperty(_USERS_OWN):
        return
    level = spark.conf.get("spark.log.level", "WARN") or "WARN"
    path = folder / "log4j2.properties"
    path.write_text(_properties(level, to))
    uri = jvm.java.net.URI.create(path.resolve().as_uri())
    jvm.org.apache.logging.log4j.core.config.Configurator.reconfigure(uri)


def _properties(level: str, to: Path | None) -> str:
    speaking = {"event": {"$resolver": "message", "stringified": True}, **_QUIET}
    lines = [*_appender("quiet", _QUIET, to), *_appender("speaking", speaking, to)]
    lines += [f"rootLogger.level = {level}", "rootLogger.appenderRef.a.ref = quiet"]
    for number, name in enumerate(_SPEAKING):
        lines += [
            f"logger.l{number}.name = {name}",
            f"logger.l{number}.additivity = false",
            f"logger.l{number}.appenderRef.a.ref = speaking",
        ]
    return "\n".join([*lines, ""])


def _appender(name: str, template: dict[str, Any], to: Path | None) -> list[str]:
    start = f"appender.{name}"
    where = {"type": "Console", "target": "SYSTEM_ERR"} if to is None else {"type": "File"}
    layout = {
        "layout.type": "JsonTemplateLayout",
        "layout.eventTemplate": json.dumps(template),
        "layout.stackTraceElementTemplate": json.dumps(_FRAME),
    }
    found = {"name": name, **where, **({"fileName": str(to)} if to else {}), **layout}
    return [f"{start}.{key} = {_escaped(value)}" for key, value in found.items()]


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\")
