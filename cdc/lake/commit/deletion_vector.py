"""Reads and writes deletion vectors: the bytes that say which rows of a data file are deleted.

A row is known by its number in the Parquet file, from 0. A vector holds row numbers as a 64-bit
Roaring bitmap in its portable form. The vectors of a commit share one vector file; a descriptor in
the log says where in it a vector lies. The format is that of Delta's protocol, section "Deletion
Vector Format".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self
from uuid import UUID
from zlib import crc32

from pyroaring import BitMap64

from cdc.lake.commit import z85

_VERSION: Final = b"\x01"
_MAGIC: Final = (1681511377).to_bytes(4, "little")
_FIELD: Final = 4  # bytes of size, magic and checksum
_UUID_CHARACTERS: Final = 20
IN_TABLE: Final = "u"
INLINE: Final = "i"


class DamagedVectorError(ValueError):
    """Says why bytes are not the vector that the descriptor speaks of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """Holds the descriptor by which the log says where the vector of a data file is."""

    storage: str  # IN_TABLE, INLINE, or "p" for an absolute path
    place: str  # of a file: its UUID in Z85, perhaps behind a folder; inline: the vector in Z85
    offset: int | None  # bytes before the vector's size in the file; None if inline
    size: int  # bytes of the vector itself: magic and bitmap
    cardinality: int  # number of deleted rows

    @classmethod
    def parse(cls, action: Mapping[str, Any]) -> Self:
        """Read the ``deletionVector`` of an ``add`` or ``remove``."""
        return cls(
            storage=action["storageType"],
            place=action["pathOrInlineDv"],
            offset=action.get("offset"),
            size=action["sizeInBytes"],
            cardinality=action["cardinality"],
        )

    def action(self) -> dict[str, Any]:
        """Return the ``deletionVector`` of an ``add`` or ``remove``."""
        offset = {} if self.offset is None else {"offset": self.offset}
        return {
            "storageType": self.storage,
            "pathOrInlineDv": self.place,
            **offset,
            "sizeInBytes": self.size,
            "cardinality": self.cardinality,
        }

    @property
    def file(self) -> str | None:
        """Return the path of the vector file in the table; None if it is not in a file there.

        Raises DamagedVectorError for a place that names no file.
        """
        if self.storage != IN_TABLE:
            return None
        folder, name = self.place[:-_UUID_CHARACTERS], self.place[-_UUID_CHARACTERS:]
        try:
            uuid = UUID(bytes=z85.decode(name, 16))
        except ValueError as error:
            raise DamagedVectorError(str(error)) from None
        return f"{folder}/{vector_file(uuid)}" if folder else vector_file(uuid)


def vector_file(uuid: UUID) -> str:
    """Return the name of the vector file with this UUID."""
    return f"deletion_vector_{uuid}.bin"


def encode_file(vectors: Mapping[str, BitMap64], uuid: UUID) -> tuple[bytes, dict[str, Vector]]:
    """Return the bytes of a vector file, and the descriptor of each vector in it.

    ``vectors`` are the deleted rows by data file.
    """
    content, described = bytearray(_VERSION), {}
    for path, rows in vectors.items():
        data = encode(rows)
        described[path] = Vector(
            storage=IN_TABLE,
            place=z85.encode(uuid.bytes),
            offset=len(content),
            size=len(data),
            cardinality=len(rows),
        )
        content += len(data).to_bytes(_FIELD, "big") + data + _checksum(data)
    return bytes(content), described


def encode(rows: BitMap64) -> bytes:
    """Return the bytes of one vector: magic and bitmap."""
    compressed = rows.copy()
    compressed.run_optimize()
    return _MAGIC + compressed.serialize()


def decode(vector: Vector, stored: bytes) -> BitMap64:
    """Return the deleted rows that ``vector`` describes.

    ``stored`` are the bytes of its file, not used if it is inline. Raises DamagedVectorError
    unless version, size, checksum, magic and cardinality agree.
    """
    data = _inline(vector) if vector.storage == INLINE else _in_file(vector, stored)
    if data[:_FIELD] != _MAGIC:
        raise DamagedVectorError("the vector is of an unknown form")
    try:
        rows = BitMap64.deserialize(data[_FIELD:])
    except ValueError as error:
        raise DamagedVectorError(str(error)) from None
    if len(rows) != vector.cardinality:
        raise DamagedVectorError(f"the vector has {len(rows)} rows, not {vector.cardinality}")
    return rows


def merged(old: BitMap64, more: Iterable[int], records: int) -> BitMap64:
    """Return the old rows and ``more``, of a file with so many records.

    Raises ValueError unless each of ``more`` is a row of the file that is not deleted yet, and
    named once: a wrong row number would delete a row that nobody asked to delete.
    """
    numbers = list(more)
    if numbers and not 0 <= min(numbers) <= max(numbers) < records:
        raise ValueError(f"a row to delete is not among the file's {records}")
    rows = old | BitMap64(numbers)
    if len(rows) != len(old) + len(numbers):
        raise ValueError("a row to delete is deleted already, or named twice")
    return rows


def _inline(vector: Vector) -> bytes:
    try:
        return z85.decode(vector.place, vector.size)
    except ValueError as error:
        raise DamagedVectorError(str(error)) from None


def _in_file(vector: Vector, stored: bytes) -> bytes:
    if stored[:1] != _VERSION or vector.offset is None:
        raise DamagedVectorError("the vector file is of an unknown version")
    begin = vector.offset + _FIELD
    size, data = stored[vector.offset : begin], stored[begin : begin + vector.size]
    if int.from_bytes(size, "big") != vector.size or len(data) != vector.size:
        raise DamagedVectorError("the vector has another size in its file")
    if stored[begin + vector.size :][:_FIELD] != _checksum(data):
        raise DamagedVectorError("the vector's checksum is wrong")
    return data


def _checksum(data: bytes) -> bytes:
    return crc32(data).to_bytes(_FIELD, "big")
