"""Define a finding: one result of a check of the source or of a server, with its remedy."""

from dataclasses import dataclass
from enum import Enum
from typing import Self

from cdc.tables import TableId


class Level(Enum):
    """Says how severe a finding is; an error keeps the pipeline from starting."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Finding:
    """Holds one result of a check. ``subject`` names a table, a column, a server or a setting."""

    level: Level
    subject: str
    message: str
    remedy: str = ""
    of_new: bool = False
    """Whether it only keeps a new table from being added, and lets a captured one continue."""
    table: TableId | None = None
    """The table that the finding is about, or whose column it is about. It cannot be parsed from
    ``subject``, because names may contain dots."""

    @classmethod
    def ok(cls, subject: str, message: str) -> Self:
        """Return a finding that needs no action."""
        return cls(Level.OK, subject, message)

    @classmethod
    def warning(cls, subject: str, message: str, *, remedy: str = "") -> Self:
        """Return a finding that lets the pipeline start."""
        return cls(Level.WARNING, subject, message, remedy)

    @classmethod
    def error(cls, subject: str, message: str, *, remedy: str = "") -> Self:
        """Return a finding that must be fixed first."""
        return cls(Level.ERROR, subject, message, remedy)
