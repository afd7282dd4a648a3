"""Read durations of the front matter, such as ``10 minutes``."""

import re
from typing import Final

_DURATION: Final = re.compile(r"(?P<n>[0-9]{1,9}) (?P<unit>second|minute|hour|day)s?")
_MICROSECONDS: Final = {
    "second": 10**6,
    "minute": 60 * 10**6,
    "hour": 3600 * 10**6,
    "day": 86400 * 10**6,
}


def is_duration(text: str) -> str:
    """Return the text; raises ValueError if it is no duration."""
    if not _DURATION.fullmatch(text):
        raise ValueError("write a number of seconds, minutes, hours or days: 10 minutes")
    return text


def microseconds(text: str) -> int:
    """Return how long a duration is."""
    found = _DURATION.fullmatch(is_duration(text))
    assert found is not None  # noqa: S101 - it is a duration
    return int(found["n"]) * _MICROSECONDS[found["unit"]]
