"""Room on a disk that is given up, piece by piece, so that it can still be said that it is full."""

import errno
import os
from contextlib import suppress
from pathlib import Path

from cdc.errors import CdcError
from cdc.stack.artifacts.prerequisites import check_disk
from cdc.state.atomic_file import write_private

_PIECE_BYTES = 64 * 1024  # more than any report; the next one gets another piece
_WHOLE_BYTES = 16 * _PIECE_BYTES
_FULL = {errno.ENOSPC, errno.EDQUOT}


def write_with_reserve(path: Path, text: str, reserve: Path) -> None:
    """``write_private``, and once more with a piece of the reserve given up when the disk is full.

    Raises OSError: the second attempt's, or what is no matter of room.
    """
    try:
        write_private(path, text)
    except OSError as error:
        if error.errno not in _FULL or not _give_up_a_piece(reserve):
            raise
        write_private(path, text)
    else:
        _fill(reserve)


def _give_up_a_piece(reserve: Path) -> bool:
    if held := _held(reserve):
        os.truncate(reserve, max(0, held - _PIECE_BYTES))
    return held > 0


def _fill(reserve: Path) -> None:
    """Only while there is plenty: of what is left of a full disk nothing is taken."""
    if _held(reserve) == _WHOLE_BYTES:
        return
    with suppress(OSError, CdcError):
        check_disk(reserve.parent)
        with reserve.open("ab") as file:
            os.posix_fallocate(file.fileno(), 0, _WHOLE_BYTES)


def _held(reserve: Path) -> int:
    return reserve.stat().st_size if reserve.exists() else 0
