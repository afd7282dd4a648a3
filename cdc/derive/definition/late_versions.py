"""Write what a query reads instead of the table whose late rows are put aside.

That is the versions of a table that rows wait for, or the rows of a table in windows.
"""

from sqlglot import exp

from cdc.derive.definition.late_bound import joined_tables, upper_bounds
from cdc.derive.late.versions import NAME, SCHEMA, SINCE, UNTIL, WINDOWED
from cdc.derive.sql.event_window import ARGUMENT
from cdc.tables import TableId


def of_versions(query: exp.Query, column: str) -> exp.Query:
    """Return the query with, for each row that waits, what had come when its wait was over.

    ``column`` is that of a valid rule with a bound.
    """
    tree = query.copy()
    (table,) = joined_tables(tree, column)
    (waited,) = upper_bounds(table, column.rpartition(".")[-1])
    alias, join = table.alias_or_name, table.find_ancestor(exp.Join)
    assert join is not None  # noqa: S101 - the rule is of a join
    came = exp.LT(this=_column(alias, SINCE), expression=exp.Paren(this=waited.upper.copy()))
    went = exp.GTE(this=_column(alias, UNTIL), expression=exp.Paren(this=waited.upper.copy()))
    both = [exp.Paren(this=one) for one in (join.args["on"], came, went)]
    join.set("on", exp.and_(*both, copy=False))
    table.replace(exp.Table(this=_name(NAME), db=_name(SCHEMA), alias=_alias(alias)))
    return tree


def of_windowed(query: exp.Query, table: TableId) -> exp.Query:
    """Return the query over the rows of its windows of a table, of which some are put aside."""
    tree = query.copy()
    for one in list(tree.find_all(exp.Table)):
        if ARGUMENT in one.args and (one.db, one.name) == (table.schema, table.name):
            alias = _alias(one.alias_or_name)
            one.replace(exp.Table(this=_name(WINDOWED), db=_name(SCHEMA), alias=alias))
    return tree


def _column(table: str, name: str) -> exp.Column:
    return exp.column(_name(name), table=_name(table))


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=_name(name))


def _name(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)
