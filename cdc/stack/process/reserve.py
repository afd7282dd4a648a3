"""Reserves disk space and frees it piece by piece, so that a full disk can still be reported."""

import errno
import os
from contextlib import suppress
from pathlib import Path

from cdc.errors import CdcError
from cdc.stack.artifacts.prerequisites import check_disk
from cdc.state.atomic_file import write_private

_PIECE_BYTES = 64 * 1024  # larger than any report; each report that needs it frees one
_WHOLE_BYTES = 16 * _PIECE_BYTES
_FULL = {errno.ENOSPC, errno.EDQUOT}


def write_with_reserve(path: Path, text: str, reserve: Path) -> None:
    """Write like ``write_private``; if the disk is full, free a piece of the reserve and retry.

    Raises OSError if the second attempt fails too, or for a cause other than a full disk.
    """
    try:
        write_private(path, text)
    except OSError as error:
        if error.errno not in _FULL or not _free_a_piece(reserve):
            raise
        write_private(path, text)
    else:
        _fill(reserve)


def _free_a_piece(reserve: Path) -> bool:
    if held := _held(reserve):
        os.truncate(reserve, max(0, held - _PIECE_BYTES))
    return held > 0


def _fill(reserve: Path) -> None:
    """Fill the reserve up, but only while there is plenty of free space."""
    if _held(reserve) == _WHOLE_BYTES:
        return
    with suppress(OSError, CdcError):
        check_disk(reserve.parent)
        with reserve.open("ab") as file:
            os.posix_fallocate(file.fileno(), 0, _WHOLE_BYTES)


def _held(reserve: Path) -> int:
    return reserve.stat().st_size if reserve.exists() else 0
