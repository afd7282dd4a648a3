"""What a look at the source or the servers found, with its remedy."""

from dataclasses import dataclass
from enum import Enum
from typing import Self

from cdc.tables import TableId


class Level(Enum):
    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """``subject`` is what it is about: a table, a column, a server, a setting."""

    level: Level
    subject: str
    message: str
    remedy: str = ""
    of_new: bool = False
    """Keeps a table from being taken in; one that was taken in already goes on."""
    table: TableId | None = None
    """That it is about, itself or by a column. The subject does not say so: a name may have a dot
    in it."""

    @classmethod
    def ok(cls, subject: str, message: str) -> Self:
        return cls(Level.OK, subject, message)

    @classmethod
    def warning(cls, subject: str, message: str, *, remedy: str = "") -> Self:
        return cls(Level.WARNING, subject, message, remedy)

    @classmethod
    def error(cls, subject: str, message: str, *, remedy: str = "") -> Self:
        return cls(Level.ERROR, subject, message, remedy)
