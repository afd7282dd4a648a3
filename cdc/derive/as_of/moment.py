"""Say of which moment the rows of a table are, as its node in a tree has it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from sqlglot import exp

from cdc.derive.sql.problem import Place

COMMIT: Final = "_commit"
"""The column that stands for the transaction that inserted a row."""
FACTS: Final = "as_of"
"""Where the meta of a table's node has its facts."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Keeps the places in the file of a table whose history is read, and of columns, for errors."""

    place: Place
    columns: Mapping[str, Place] = field(default_factory=dict)  # that the query takes of it
    bare: Mapping[str, Place] = field(default_factory=dict)  # that may be of any table


def sources(select: exp.Select) -> list[exp.Expr]:
    """Return the FROM and the joins of a SELECT, in order; ``this`` of each is what it reads."""
    first = select.args.get("from_")
    return [*([] if first is None else [first]), *(select.args.get("joins") or [])]


def is_by_commit(moment: exp.Expr) -> bool:
    """Return whether a moment is a row's own transaction."""
    return isinstance(moment, exp.Column) and moment.name == COMMIT


def used_columns(query: exp.Expr, name: str) -> Iterator[exp.Column]:
    """Yield the columns that a SELECT takes of the table that it calls so."""
    return (one for one in query.find_all(exp.Column) if one.table.lower() == name.lower())


def bare_columns(query: exp.Expr) -> Iterator[exp.Column]:
    """Yield the columns without the name of a table."""
    return (one for one in query.find_all(exp.Column) if not one.table)
