"""Reads Avro as Spark's decoder does, also where bytes are broken.

A decoder may take broken bytes for a value where another one fails: a boolean of 2, a branch of a
union from the end of its list, a number of 40 bits for an int. The libraries differ here, and an
event would be kept by one way of applying and refused by the other. So these are the rules of the
Java library's ``BinaryDecoder``, one function per type. Each takes the bytes and a place in them,
and returns the value and the place behind it.
"""

import json
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from cdc.apply.local.not_local import NotLocalError
from cdc.events.avro import LONGEST, MOST_ITEMS

Read = Callable[[bytes, int], tuple[Any, int]]
Errors = Literal["strict", "surrogateescape"]
"""What becomes of a text that is not UTF-8: an error, or lone surrogates in place of bytes."""

_FLOAT: Final = struct.Struct("<f")
_DOUBLE: Final = struct.Struct("<d")
_INT_BYTES: Final = 5
_LONG_BYTES: Final = 10


class NotAvroError(Exception):
    """Says that bytes are no value of their schema."""


def reader(schema_json: str, errors: Errors) -> Read:
    """Return the function that reads records of the schema.

    It raises NotAvroError or IndexError for bytes that are none, and UnicodeDecodeError, if errors
    are strict, for a text that is not UTF-8. Raises NotLocalError for a schema with a type that
    the connector does not use.
    """
    return _Readers(errors).of(json.loads(schema_json), "")


class _Readers:
    """Makes the functions of one schema; named types may be used again after their definition."""

    def __init__(self, errors: Errors) -> None:
        self._named: dict[str, Read] = {}
        self._simple: dict[str, Read] = {
            "null": lambda _, at: (None, at),
            "boolean": _boolean,
            "int": _int,
            "long": _long,
            "float": _float,
            "double": _double,
            "bytes": _bytes,
            "string": _text(errors),
        }

    def of(self, schema: Any, namespace: str) -> Read:  # noqa: ANN401 - Avro is JSON
        if isinstance(schema, str):
            return self._by_name(schema, namespace)
        if isinstance(schema, list):
            return _union([self.of(branch, namespace) for branch in schema])
        if "logicalType" in schema:
            raise NotLocalError(f"its events have values of Avro's {schema['logicalType']}")
        match schema["type"]:
            case "record":
                return self._record(schema, namespace)
            case "array":
                return _array(self.of(schema["items"], namespace))
            case "map":
                return _map(self._simple["string"], self.of(schema["values"], namespace))
            case other:
                return self.of(other, namespace)

    def _by_name(self, name: str, namespace: str) -> Read:
        for known in (self._simple.get(name), self._named.get(_full(name, namespace))):
            if known is not None:
                return known
        raise NotLocalError(f"its events have values of Avro's {name}")

    def _record(self, schema: Mapping[str, Any], namespace: str) -> Read:
        name = _full(schema["name"], schema.get("namespace", namespace))
        inside = name.rpartition(".")[0]
        fields: list[tuple[str, Read]] = []
        self._named[name] = read = _record(fields)
        fields += [(field["name"], self.of(field["type"], inside)) for field in schema["fields"]]
        return read


def _full(name: str, namespace: str) -> str:
    return f"{namespace}.{name}" if namespace and "." not in name else name


def _record(fields: list[tuple[str, Read]]) -> Read:
    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        values = {}
        for name, one in fields:
            values[name], at = one(data, at)
        return values, at

    return read


def _union(branches: list[Read]) -> Read:
    second = branches[1] if len(branches) > 1 else None

    def read(data: bytes, at: int) -> tuple[Any, int]:
        if data[at] == 2 and second is not None:  # noqa: PLR2004 - the number 1, as most are
            return second(data, at + 1)
        number, at = _int(data, at)
        if number < 0:
            raise NotAvroError
        return branches[number](data, at)

    return read


def _array(item: Read) -> Read:
    def read(data: bytes, at: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        count, at = _count(data, at, 0)
        while count:
            for _ in range(count):
                one, at = item(data, at)
                items.append(one)
            count, at = _count(data, at, len(items))
        return items, at

    return read


def _map(key: Read, value: Read) -> Read:
    def read(data: bytes, at: int) -> tuple[dict[str, Any], int]:
        pairs: list[tuple[str, Any]] = []
        count, at = _count(data, at, 0)
        while count:
            for _ in range(count):
                name, at = key(data, at)
                one, at = value(data, at)
                pairs.append((name, one))
            count, at = _count(data, at, len(pairs))
        return dict(pairs), at

    return read


def _count(data: bytes, at: int, held: int) -> tuple[int, int]:
    """Read the number of items of a block, behind those of the blocks before it.

    A negative one is followed by the number of the block's bytes.
    """
    count, at = _long(data, at)
    if count < 0:
        _, at = _long(data, at)
        count = -count
    # Every item that the connector sends takes a byte.
    if count > len(data) or held + count > MOST_ITEMS:
        raise NotAvroError
    return count, at


def _boolean(data: bytes, at: int) -> tuple[bool, int]:
    return data[at] == 1, at + 1


def _int(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:  # noqa: PLR2004 - the last byte of a number
        return (byte >> 1) ^ -(byte & 1), at + 1
    return _number(data, at, _INT_BYTES, 0xFFFF_FFFF)


def _long(data: bytes, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:  # noqa: PLR2004 - the last byte of a number
        return (byte >> 1) ^ -(byte & 1), at + 1
    return _number(data, at, _LONG_BYTES, 0xFFFF_FFFF_FFFF_FFFF)


def _number(data: bytes, at: int, most: int, mask: int) -> tuple[int, int]:
    """Read a number of at most so many bytes; bits beyond its width are dropped."""
    number = 0
    for place in range(most):
        byte = data[at + place]
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:  # noqa: PLR2004 - the last byte of a number
            number &= mask
            return (number >> 1) ^ -(number & 1), at + place + 1
    raise NotAvroError


def _float(data: bytes, at: int) -> tuple[float, int]:
    return _FLOAT.unpack(_slice(data, at, 4))[0], at + 4


def _double(data: bytes, at: int) -> tuple[float, int]:
    return _DOUBLE.unpack(_slice(data, at, 8))[0], at + 8


def _bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = _long(data, at)
    return _slice(data, at, size), at + size


def _text(errors: Errors) -> Read:
    def read(data: bytes, at: int) -> tuple[str, int]:
        size, at = _long(data, at)
        return _slice(data, at, size).decode("utf-8", errors), at + size

    return read


def _slice(data: bytes, at: int, size: int) -> bytes:
    end = at + size
    if size < 0 or end > len(data) or size > LONGEST:
        raise NotAvroError
    return data[at:end]
