"""Parse ``--at``: the published cut that a reader asks for."""

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from cdc.errors import CdcError, ErrorKind
from cdc.events.values.lsn import parse_lsn

LATEST: Final = "latest"
LSN: Final = re.compile(r"[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}")


@dataclass(frozen=True, slots=True)
class Latest:
    """Asks for the newest cut."""


@dataclass(frozen=True, slots=True)
class Numbered:
    """Asks for the cut with this number."""

    cut: int


@dataclass(frozen=True, slots=True)
class UpToLsn:
    """Asks for the newest cut without a commit after the LSN."""

    lsn: int


@dataclass(frozen=True, slots=True)
class UpToTime:
    """Asks for the last cut before the first one that holds a commit made after this time."""

    time: datetime  # with a time zone


At = Latest | Numbered | UpToLsn | UpToTime


def parse(text: str) -> At:
    """Parse ``latest``, ``17``, ``0/16B3748`` or ``2026-01-31T12:00:00Z``.

    Raises CONFIG for anything else, and for a time without a time zone.
    """
    if text == LATEST:
        return Latest()
    if text.isdecimal():
        return Numbered(int(text))
    if LSN.fullmatch(text):
        return UpToLsn(parse_lsn(text))
    return UpToTime(of_zone(_time(text), text))


def of_zone(time: datetime, text: str) -> datetime:
    """Return the time unchanged; raises CONFIG if it has no time zone, rather than guess one."""
    if time.tzinfo is None:
        raise CdcError(
            ErrorKind.CONFIG,
            f"--at {text!r} has no time zone",
            remedy="add Z for UTC, or an offset: 2026-01-31T12:00:00Z, 2026-01-31T12:00:00+01:00",
        )
    return time


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise CdcError(
            ErrorKind.CONFIG,
            f"--at {text!r} is not a cut number, an LSN, a timestamp or 'latest'",
            remedy="write it like 17, 0/16B3748, 2026-01-31T12:00:00Z or latest; see wal2lake cuts",
        ) from None
