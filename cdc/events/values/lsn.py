"""Convert positions in the source's WAL between Postgres's text and numbers."""

from typing import Final

NO_LSN: Final = 0
"""Stands for the LSN of an incremental snapshot's reads, to which the connector gives none."""


def parse_lsn(text: str) -> int:
    """Return an LSN such as ``16/B374D848`` as a number."""
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)


def format_lsn(lsn: int) -> str:
    """Return an LSN as Postgres writes it, such as ``16/B374D848``."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
