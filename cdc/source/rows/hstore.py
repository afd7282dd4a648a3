"""Write an hstore as JSON exactly as the connector does, character for character.

A row of a table without a key is identified by its values, so reading it again must not change the
order of the pairs. The connector puts them into Java's HashMap, which orders them by the buckets of
their keys.
"""

import json
from collections.abc import Sequence
from typing import Final

_SMALLEST: Final = 16  # buckets of a new map; doubled when three quarters are full
_SHORT: Final = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPES: Final = str.maketrans(
    {chr(code): f"\\u{code:04X}" for code in range(32)} | _SHORT | {'"': '\\"', "\\": "\\\\"}
)


def connector_json(text: str) -> str:
    """Return the connector's JSON for Postgres's JSON, which has the pairs in the hstore's order.

    The order of nine or more keys in one bucket may differ from the connector's.
    """
    pairs: dict[str, str | None] = json.loads(text)
    written = (f"{_json_string(key)}:{_json_string(pairs[key])}" for key in _ordered(list(pairs)))
    return f"{{{','.join(written)}}}"


def _ordered(keys: Sequence[str]) -> list[str]:
    """Sort keys by bucket; keys of one bucket keep their order of insertion."""
    buckets = _SMALLEST
    while len(keys) > buckets * 3 // 4:
        buckets *= 2
    return sorted(keys, key=lambda key: _bucket(key, buckets))


def _bucket(key: str, buckets: int) -> int:
    """Return the bucket of a key: its ``String.hashCode``, spread as ``HashMap`` does."""
    code = 0
    units = key.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return (code ^ code >> 16) & (buckets - 1)


def _json_string(text: str | None) -> str:
    return "null" if text is None else f'"{text.translate(_ESCAPES)}"'
