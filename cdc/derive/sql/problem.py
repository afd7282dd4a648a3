"""Define what is wrong with a definition, and where."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from cdc.errors import CdcError, ErrorKind

Place = tuple[int, int]
"""A line and a column, both counted from 1."""
Complaint = tuple[str, str]
"""A message and a remedy."""
Check = Callable[[exp.Expr], Complaint | None]


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """Describes an error in a definition's file; line and column are counted from 1."""

    file: str
    line: int
    column: int
    message: str
    remedy: str

    def error(self) -> CdcError:
        """Return the problem as an error of kind CONFIG."""
        return CdcError(ErrorKind.CONFIG, str(self), remedy=self.remedy)

    @property
    def where(self) -> str:
        """Return the place as ``file:line:column``."""
        return f"{self.file}:{self.line}:{self.column}"

    def __str__(self) -> str:
        return f"{self.where}: {self.message}"
