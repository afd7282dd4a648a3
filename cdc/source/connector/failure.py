"""Summarize the stack trace of a failed connector without revealing values of rows.

A failing converter quotes the value of a row, in exceptions of a dozen classes. So messages are
passed on only for exceptions about servers and names, and never the quoted parts.
"""

import re
from typing import Final

_OF_SERVERS: Final = (
    "io.debezium.DebeziumException",
    "java.io.EOFException",
    "java.net.",
    "java.util.concurrent.TimeoutException",
    "org.apache.kafka.common.errors.",
    "org.postgresql.util.PSQLException",
    "wal2lake.",
)
_NAMELESS: Final = "UnknownTopicOrPartitionException"
"""It does not say which topic is missing; the exception that it caused does."""
_LEVEL: Final = re.compile(r"(?:ERROR|FATAL|PANIC): ")
_QUOTED: Final = re.compile(r"\"[^\"]*\"?|'[^']*'?|\([^)]*\)?")
_CLASS: Final = re.compile(r"(?:Caused by: )?([\w.$]+)(?:: (.*))?")
_MAX_LENGTH: Final = 400
_AT_AN_EVENT: Final = "Error while processing event at offset"


def cause(trace: str) -> str:
    """Return the innermost cause of a Java stack trace in one line; empty for an empty trace.

    If the message may quote a row, return the names of its class and of the enclosing exception.
    """
    lines = trace.splitlines()
    heads = [lines[0], *(line for line in lines if line.startswith("Caused by: "))] if lines else []
    causes = [match.groups(default="") for line in heads if (match := _CLASS.match(line))]
    if not causes:
        return ""
    if causes[-1][0].endswith(_NAMELESS) and len(causes) > 1 and _is_quotable(*causes[-2]):
        del causes[-1]
    name, message = causes[-1]
    if _is_quotable(name, message):
        return _without_quotes(message)[:_MAX_LENGTH]
    outer = causes[-2][0] if len(causes) > 1 else ""
    inside = f" in {_short(outer)}" if outer else ""
    return f"{_short(name)}{inside}; see the worker's log"


def is_at_an_event(trace: str) -> bool:
    """Return whether the connector failed at an event it had received, and so will fail again."""
    return _AT_AN_EVENT in trace


def _is_quotable(name: str, message: str) -> bool:
    return name.startswith(_OF_SERVERS) and bool(message)


def _without_quotes(message: str) -> str:
    """Return the message up to a second colon, with quoted parts replaced by dots."""
    level = match[0] if (match := _LEVEL.match(message)) else ""
    return level + _QUOTED.sub("...", message[len(level) :]).partition(": ")[0]


def _short(name: str) -> str:
    return name.rpartition(".")[2]
