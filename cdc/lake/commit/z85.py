"""Converts Z85, ZeroMQ's text form of bytes, in which Delta writes UUIDs and inline vectors."""

from typing import Final

_ALPHABET: Final = (
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
)
_VALUES: Final = {character: value for value, character in enumerate(_ALPHABET)}
_BYTES: Final = 4  # of a block
_CHARACTERS: Final = 5  # of a block
_BASE: Final = len(_ALPHABET)


def encode(data: bytes) -> str:
    """Return the text of ``data``, filled up with zero bytes to whole blocks of four."""
    filled = data + bytes(-len(data) % _BYTES)
    return "".join(_block(filled[at : at + _BYTES]) for at in range(0, len(filled), _BYTES))


def decode(text: str, size: int) -> bytes:
    """Return the first ``size`` bytes that ``text`` means.

    Raises ValueError if it is not Z85 of so many bytes.
    """
    blocks = [text[at : at + _CHARACTERS] for at in range(0, len(text), _CHARACTERS)]
    data = b"".join(map(_bytes, blocks))
    if not 0 <= len(data) - size < _BYTES:
        raise ValueError(f"{len(text)} characters of Z85 do not mean {size} bytes")
    return data[:size]


def _block(four: bytes) -> str:
    value = int.from_bytes(four, "big")
    return "".join(_ALPHABET[value // _BASE**power % _BASE] for power in (4, 3, 2, 1, 0))


def _bytes(block: str) -> bytes:
    value = 0
    for character in block:
        if character not in _VALUES:
            raise ValueError("not Z85: it has a character of another alphabet")
        value = value * _BASE + _VALUES[character]
    if len(block) != _CHARACTERS or value >= 1 << 8 * _BYTES:
        raise ValueError("not Z85: it has a block that means no four bytes")
    return value.to_bytes(_BYTES, "big")
