"""What a failed connector may be quoted with: Kafka Connect gives a stack trace with its texts.

A converter that stumbles quotes the value of a row, in an exception of a dozen classes. So only the
words of those are passed on that speak of servers and names, and of these nothing in quotes.
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
)
_NAMELESS: Final = "UnknownTopicOrPartitionException"
"""Says that there is no such topic, and not which; what it caused does."""
_LEVEL: Final = re.compile(r"(?:ERROR|FATAL|PANIC): ")
_QUOTED: Final = re.compile(r"\"[^\"]*\"?|'[^']*'?|\([^)]*\)?")
_CLASS: Final = re.compile(r"(?:Caused by: )?([\w.$]+)(?:: (.*))?")
_KEPT: Final = 400
_AT_AN_EVENT: Final = "Error while processing event at offset"


def cause(trace: str) -> str:
    """The innermost cause of a Java stack trace in one line; empty for an empty one.

    The class of one whose words may be of a row, and the class that it is the cause of.
    """
    lines = trace.splitlines()
    heads = [lines[0], *(line for line in lines if line.startswith("Caused by: "))] if lines else []
    found = [match.groups(default="") for line in heads if (match := _CLASS.match(line))]
    if not found:
        return ""
    if found[-1][0].endswith(_NAMELESS) and len(found) > 1 and _speaks(*found[-2]):
        del found[-1]
    name, words = found[-1]
    if _speaks(name, words):
        return _without_quotes(words)[:_KEPT]
    outer = found[-2][0] if len(found) > 1 else ""
    below = f" below {_short(outer)}" if outer else ""
    return f"{_short(name)}{below}; the worker's log says where"


def is_at_an_event(trace: str) -> bool:
    """Whether the connector failed at an event that it had received: it will fail there again."""
    return _AT_AN_EVENT in trace


def _speaks(name: str, words: str) -> bool:
    return name.startswith(_OF_SERVERS) and bool(words)


def _without_quotes(words: str) -> str:
    """What stands before a second colon, without what is quoted."""
    level = match[0] if (match := _LEVEL.match(words)) else ""
    return level + _QUOTED.sub("...", words[len(level) :]).partition(": ")[0]


def _short(name: str) -> str:
    return name.rpartition(".")[2]
