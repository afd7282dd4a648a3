"""What a Java stack trace says of why."""

from typing import Final

_CAUSE: Final = "Caused by: "
_NAMELESS: Final = "UnknownTopicOrPartitionException"
"""Says that there is no such topic, and not which; what it caused does."""


def innermost(trace: str) -> str:
    """``class: message`` of the innermost cause that tells something; empty for an empty trace."""
    lines = [line for line in trace.splitlines() if line and not line[0].isspace()]
    causes = lines[:1] + [line for line in lines[1:] if line.startswith(_CAUSE)]
    told = [line for line in causes if _NAMELESS not in line] or causes
    return told[-1].removeprefix(_CAUSE) if told else ""
