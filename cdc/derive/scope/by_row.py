"""Tell a query whose every row is made of one row of one table."""

from collections.abc import Sequence
from typing import Final

from sqlglot import exp

from cdc.derive.scope.printed import rename
from cdc.derive.scope.scope import Branch
from cdc.derive.sql import printing

_PARTS: Final = frozenset({"expressions", "from_", "where"})
"""What a SELECT may have: anything else brings rows together, or leaves some out."""


def row_query(tree: exp.Query, branches: Sequence[Branch]) -> str:
    """Return the query over the restricted rows of its table; empty if rows of it meet."""
    if len(branches) != 1 or len(branches[0].occurrences) != 1:
        return ""
    (occurrence,) = branches[0].occurrences
    if occurrence.together or not _is_by_row(tree):
        return ""
    copy = tree.copy()
    (table,) = copy.find_all(exp.Table)
    rename(table, occurrence.name, 0)
    return printing.duckdb(copy)


def _is_by_row(tree: exp.Query) -> bool:
    """Return whether it has only SELECTs of rows, one in FROM of the other."""
    if tree.find(exp.SetOperation, exp.AggFunc, exp.Window) is not None:
        return False
    return all(
        {name for name, value in select.args.items() if value} <= _PARTS
        and (select is tree or isinstance(select.parent, exp.Subquery))
        for select in tree.find_all(exp.Select)
    ) and all(isinstance(one.parent, exp.From) for one in tree.find_all(exp.Subquery))
