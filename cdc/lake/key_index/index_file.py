"""Keeps an index in a file, which is mapped and not read into memory.

The file is a cache. One that is not exactly as it was written, or that was made from another data
file, in another format or with another secret, is as good as none.
"""

import mmap
import os
import struct
import zlib
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cdc.lake.key_index.codes import Codes, KeyCoder
from cdc.lake.key_index.data_file import Stamp
from cdc.lake.key_index.file_index import FileIndex
from cdc.state.atomic_file import write_private_bytes

SUFFIX: Final = ".keys"
_FORMAT: Final = b"wal2lake keys 1\n"  # another number for each change of header or arrays
_HEADER: Final = struct.Struct("<16s32sI")  # format, origin, CRC-32 of the arrays
_CHECKSUM: Final = struct.Struct("<I")  # CRC-32 of the header
_BEGIN: Final = 64  # of the arrays, which are little-endian


def file_name(data_file: str) -> str:
    """Return the name of the index file of a data file, given its path in the table."""
    return sha256(data_file.encode()).hexdigest()[:32] + SUFFIX


def save(path: Path, index: FileIndex, stamp: Stamp, coder: KeyCoder) -> None:
    """Write the index of the data file with this stamp; make the directory. Raises OSError."""
    views = [array.data.cast("B") for array in _little(index.arrays()) if array.size]
    header = _HEADER.pack(_FORMAT, _origin(stamp, coder), _checksum(views))
    whole = header + _CHECKSUM.pack(zlib.crc32(header))
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private_bytes(path, [whole.ljust(_BEGIN, b"\0"), *views])


def load(path: Path, stamp: Stamp, coder: KeyCoder) -> FileIndex | None:
    """Map the index of the data file with this stamp; None if there is none that is right.

    All of it is read once, for its checksum.
    """
    try:
        mapped = _mapped(path, _BEGIN + stamp.rows * sum(kind.itemsize for kind in _kinds(coder)))
    except OSError:
        return None
    if mapped is None or not _is_right(mapped, stamp, coder):
        return None
    arrays, begin = list[NDArray[Any]](), _BEGIN
    for kind in _kinds(coder):
        arrays.append(np.frombuffer(mapped, kind, stamp.rows, begin))
        begin += arrays[-1].nbytes
    first, *second, rows = arrays
    return FileIndex(Codes(first, second[0] if second else None), rows)


def _mapped(path: Path, size: int) -> mmap.mmap | None:
    with path.open("rb") as handle:
        if os.fstat(handle.fileno()).st_size != size:
            return None
        return mmap.mmap(handle.fileno(), size, access=mmap.ACCESS_READ)


def _is_right(mapped: mmap.mmap, stamp: Stamp, coder: KeyCoder) -> bool:
    header = mapped[: _HEADER.size]
    name, origin, checksum = _HEADER.unpack(header)
    return (
        _CHECKSUM.unpack_from(mapped, _HEADER.size) == (zlib.crc32(header),)
        and name == _FORMAT
        and origin == _origin(stamp, coder)
        and checksum == _checksum([memoryview(mapped)[_BEGIN:]])
    )


def _origin(stamp: Stamp, coder: KeyCoder) -> bytes:
    return sha256(repr((stamp, coder.meaning)).encode()).digest()


def _kinds(coder: KeyCoder) -> list[np.dtype[Any]]:
    codes = ["<i8"] if coder.exact else ["<u8", "<u8"]
    return [np.dtype(kind) for kind in [*codes, "<u4"]]


def _little(arrays: Sequence[NDArray[Any]]) -> list[NDArray[Any]]:
    return [array.astype(array.dtype.newbyteorder("<"), copy=False) for array in arrays]


def _checksum(views: Sequence[memoryview]) -> int:
    checksum = 0
    for view in views:
        checksum = zlib.crc32(view, checksum)
    return checksum
