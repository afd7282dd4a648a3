"""The JSON that the connector writes of an hstore, sign for sign.

A row of a table without a key is known by what its values are: one that is read again must not be
another because of the order of its pairs. The connector puts them into a hash map of Java, which
gives them back by the places of their keys.
"""

import json
from collections.abc import Sequence
from typing import Final

_SMALLEST: Final = 16  # places of a new map; twice as many wherever three quarters are taken
_SHORT: Final = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPES: Final = str.maketrans(
    {chr(code): f"\\u{code:04X}" for code in range(32)} | _SHORT | {'"': '\\"', "\\": "\\\\"}
)


def connector_json(text: str) -> str:
    """From Postgres's own JSON of it, which has the pairs in the order of the hstore.

    The order of nine and more keys that fall on one place is not known here.
    """
    pairs: dict[str, str | None] = json.loads(text)
    written = (f"{_json_string(key)}:{_json_string(pairs[key])}" for key in _ordered(list(pairs)))
    return f"{{{','.join(written)}}}"


def _ordered(keys: Sequence[str]) -> list[str]:
    """Keys of one place stay as they were put there."""
    places = _SMALLEST
    while len(keys) > places * 3 // 4:
        places *= 2
    return sorted(keys, key=lambda key: _place(key, places))


def _place(key: str, places: int) -> int:
    """``String.hashCode``, with its upper half upon its lower, as ``HashMap`` takes it."""
    found = 0
    units = key.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        found = (31 * found + (high << 8 | low)) & 0xFFFFFFFF
    return (found ^ found >> 16) & (places - 1)


def _json_string(text: str | None) -> str:
    return "null" if text is None else f'"{text.translate(_ESCAPES)}"'
