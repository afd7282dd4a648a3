"""How a JVM of ours writes its log where what it works on are rows: lines made of names.

Messages and texts of exceptions quote values of rows. A message is there where the logger is known
to speak of other things; of an exception there are its class, that of the root cause, and where
both were raised: by log4j's own resolvers, which are given no text at all.
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
    """A log4j configuration: levels of the loggers whose events tell their message; no others do.

    ``speaking`` are loggers of parts that handle bytes, names and servers, and no value of a row.
    """
    lines = [*_appender("quiet", appender, _NAMES), *_appender("speaking", appender, _SPEAKING)]
    lines += [f"rootLogger.level = {level}", "rootLogger.appenderRef.a.ref = quiet"]
    for number, (name, of_it) in enumerate(speaking.items()):
        start = f"logger.l{number}"
        lines += [f"{start}.name = {name}", f"{start}.level = {of_it}"]
        lines += [f"{start}.additivity = false", f"{start}.appenderRef.a.ref = speaking"]
    return "\n".join([*lines, ""])


def _appender(name: str, given: Mapping[str, str], template: Mapping[str, Any]) -> list[str]:
    values = {
        "name": name,
        **given,
        "layout.type": "JsonTemplateLayout",
        "layout.eventTemplate": json.dumps(template),
        "layout.stackTraceElementTemplate": json.dumps(_FRAME),
    }
    return [f"appender.{name}.{key} = {value}" for key, value in values.items()]
