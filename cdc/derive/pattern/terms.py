"""Define a condition as data: what is computed of values that a row or the match so far has.

Everything that one row gives by itself is a column of the rows, which DuckDB computes. A term
combines values of several rows, and is evaluated for each row that the matcher tries.
"""

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum


class Operation(StrEnum):
    """Says what is computed of terms, with NULL as in Postgres."""

    AND = "and"
    OR = "or"
    NOT = "not"
    EQUAL = "="
    UNEQUAL = "<>"
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    DISTINCT = "is distinct from"
    SAME = "is not distinct from"
    IS_NULL = "is null"
    IS_TRUE = "is true"
    IS_FALSE = "is false"
    IN = "in"  # the first term in the others
    COALESCE = "coalesce"
    CASE = "case"  # condition, value, ..., default
    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"


@dataclass(frozen=True, slots=True)
class Constant:
    """Gives a value, or NULL."""

    value: bool | int | Decimal | str | None


@dataclass(frozen=True, slots=True)
class Here:
    """Gives a column of the current row, or of the one so many rows before it in the partition."""

    column: int
    back: int = 0


@dataclass(frozen=True, slots=True)
class There:
    """Gives a column of the row at a slot's position, or of one before it; NULL without a row."""

    slot: int
    column: int
    back: int = 0


@dataclass(frozen=True, slots=True)
class Total:
    """Gives the value of a slot that aggregates."""

    slot: int


@dataclass(frozen=True, slots=True)
class Computed:
    """Gives the result of an operation."""

    operation: Operation
    of: tuple["Term", ...]


Term = Constant | Here | There | Total | Computed
