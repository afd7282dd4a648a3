"""Positions in the source's WAL, as Postgres writes them and as numbers."""

from typing import Final

NO_LSN: Final = 0
"""Of the reads of an incremental snapshot: the connector gives them none."""


def parse_lsn(text: str) -> int:
    """``16/B374D848`` as a number."""
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)


def format_lsn(lsn: int) -> str:
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
