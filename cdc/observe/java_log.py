"""Configure log4j so that a JVM that works on rows writes no value of one to its log.

Log messages and exceptions quote values of rows. So a message is written only for loggers that are
known not to mention rows. Of an exception, the log has its class, the class of its root cause, and
where both were raised, through log4j resolvers that never see the message.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

_FRAME: Final = {
    name: {"$resolver": "stackTraceElement", "field": field}
    for name, field in (("class", "className"), ("method", "methodName"), ("line", "lineNumber"))
}
_TIME: Final = {"format": "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", "timeZone": "UTC"}
_NAMES: Final[dict[str, Any]] = {
    "level": {"$resolver": "level", "field": "name"},
    "timestamp": {"$resolver": "timestamp", "pattern": _TIME},
    "logger": {"$resolver": "logger", "field": "name"},
    "exception": {"$resolver": "exception", "field": "className"},
    "raised_at": {"$resolver": "exception", "field": "stackTrace"},
    "root": {"$resolver": "exceptionRootCause", "field": "className"},
    "root_raised_at": {"$resolver": "exceptionRootCause", "field": "stackTrace"},
}
_SPEAKING: Final = {"event": {"$resolver": "message", "stringified": True}, **_NAMES}
CONSOLE: Final = {"type": "Console"}


def configuration(
    *, level: str, speaking: Mapping[str, str], appender: Mapping[str, str] = CONSOLE
) -> str:
    """Return the text of a log4j configuration.

    ``level`` is that of all loggers without messages. ``speaking`` gives the levels of the loggers
    whose messages are written: those of parts that handle bytes, names and servers, but no values
    of rows. ``appender`` has the settings of the appender other than its layout.
    """
    lines = [*_appender("quiet", appender, _NAMES), *_appender("speaking", appender, _SPEAKING)]
    lines += [f"rootLogger.level = {level}", "rootLogger.appenderRef.a.ref = quiet"]
    for number, (name, logger_level) in enumerate(speaking.items()):
        start = f"logger.l{number}"
        lines += [f"{start}.name = {name}", f"{start}.level = {logger_level}"]
        lines += [f"{start}.additivity = false", f"{start}.appenderRef.a.ref = speaking"]
    return "\n".join([*lines, ""])


def _appender(name: str, settings: Mapping[str, str], template: Mapping[str, Any]) -> list[str]:
    values = {
        "name": name,
        **settings,
        "layout.type": "JsonTemplateLayout",
        "layout.eventTemplate": json.dumps(template),
        "layout.stackTraceElementTemplate": json.dumps(_FRAME),
    }
    return [f"appender.{name}.{key} = {value}" for key, value in values.items()]
