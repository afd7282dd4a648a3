"""Find the scope of a query.

A column of the scope key has to come from one expression over the rows of the innermost SELECT, and
GROUP BY and every PARTITION BY on the way have to keep its values apart. Then a condition on that
expression, put into the WHERE of the innermost SELECT, leaves whole groups and partitions.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from cdc.derive.scope.by_row import row_query
from cdc.derive.scope.conditions import condition_occurrences
from cdc.derive.scope.leaf import Leaf, name_groups, read_leaf
from cdc.derive.scope.links import link_of_join
from cdc.derive.scope.printed import branch, restricted_query
from cdc.derive.scope.refused import WholeError
from cdc.derive.scope.scope import Scope, Whole
from cdc.derive.scope.together import kept_apart
from cdc.tables import TableId

Found = Mapping[int, exp.Expr]
"""The expression that an output column is in each leaf, by the leaf's number."""


@dataclass(frozen=True, slots=True)
class _Output:
    name: str
    found: Found | None  # None: it cannot be in a scope key


def scope_of(
    query: exp.Query, key: Collection[str], columns: Mapping[TableId, Sequence[str]]
) -> Scope | Whole:
    """Return the scope of a normalized query over tables with these columns.

    The scope key is the table's ``key`` where it can be, and all possible columns otherwise.
    """
    reader = _Reader(columns)
    try:
        tree = _without_ctes(query.copy())
        outputs = reader.read(tree)
    except WholeError as error:
        return Whole(str(error))
    possible = {one.name: one.found for one in outputs if one.found is not None}
    chosen = tuple(key) if key and set(key) <= set(possible) else tuple(possible)
    if not chosen:
        return Whole("no output column is one of GROUP BY and every PARTITION BY")
    leaves = [
        (leaf, [possible[name][number] for name in chosen])
        for number, leaf in enumerate(reader.leaves)
    ]
    branches = tuple(branch(leaf, expressions) for leaf, expressions in leaves)
    by_row = row_query(tree, branches)
    narrowed = restricted_query(tree, leaves)
    return Scope(columns=chosen, branches=branches, query=narrowed, by_row=by_row)


def _without_ctes(tree: exp.Query) -> exp.Query:
    """Write the queries of WITH where they are used.

    Raises WholeError if two of them have the same name, which may hide one another.
    """
    names = [cte.alias for cte in tree.find_all(exp.CTE)]
    if len(set(names)) < len(names):
        raise WholeError("two queries of WITH have the same name")
    while (clause := tree.find(exp.With)) is not None:
        above = clause.parent
        cte = clause.expressions[0]
        name = cte.alias
        for table in list(above.find_all(exp.Table)) if above is not None else []:
            if table.name == name and not table.args.get("db"):
                alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name, quoted=True))
                table.replace(exp.Subquery(this=cte.this.copy(), alias=alias))
        cte.pop()
        if not clause.expressions:
            clause.pop()
    return tree


class _Reader:
    def __init__(self, columns: Mapping[TableId, Sequence[str]]) -> None:
        self._columns = columns
        self.leaves: list[Leaf] = []

    def read(self, query: exp.Expr) -> list[_Output]:
        """Return the output columns of a query; the leaves below are added."""
        if isinstance(query, exp.SetOperation):
            return _both(self.read(query.left), self.read(query.right))
        if isinstance(query, exp.Subquery):
            return self.read(query.this)
        if not isinstance(query, exp.Select):
            raise WholeError(f"it has a {query.key}")
        source = query.args["from_"].this
        if isinstance(source, exp.Subquery) and not query.args.get("joins"):
            return self._over(query, source)
        return self._leaf(query)

    def _over(self, select: exp.Select, source: exp.Subquery) -> list[_Output]:
        """Return the outputs of a SELECT over one subquery."""
        below = {output.name: output.found for output in self.read(source.this)}
        for part in (*select.selects, *_clauses(select)):
            if part.find(exp.Query) is not None:
                raise WholeError("a subquery reads a table beside a subquery in FROM")
        _name_source(select, source.alias, below)
        apart = kept_apart(select)
        return [
            _Output(output.alias_or_name, below.get(value.name) if is_kept else None)
            for output in select.selects
            for value in [output.unalias()]
            for is_kept in [isinstance(value, exp.Column) and apart(value)]
        ]

    def _leaf(self, select: exp.Select) -> list[_Output]:
        leaf = read_leaf(select, self._columns)
        for join in select.args.get("joins") or []:
            leaf.links.append(link_of_join(leaf, join))
        condition_occurrences(leaf, self._columns)
        number, apart = len(self.leaves), kept_apart(select)
        self.leaves.append(leaf)
        return [
            _Output(output.alias_or_name, {number: value} if apart(value) else None)
            for output in select.selects
            for value in [output.unalias()]
        ]


def _name_source(select: exp.Select, source: str, columns: Collection[str]) -> None:
    """Give every column of the subquery in FROM its name, so that equal ones look equal."""
    name_groups(select, lambda column: column.name in columns)
    for column in list(select.find_all(exp.Column)):
        is_own = column.parent_select is select and column.name in columns
        if is_own and not column.table:
            column.set("table", exp.to_identifier(source, quoted=True))


def _clauses(select: exp.Select) -> list[exp.Expr]:
    return [found for name in ("where", "having") if (found := select.args.get(name)) is not None]


def _both(left: Sequence[_Output], right: Sequence[_Output]) -> list[_Output]:
    """Return the outputs of a set operation, which are found by their place."""
    return [
        _Output(one.name, None if None in (one.found, other.found) else _merged(one, other))
        for one, other in zip(left, right, strict=True)
    ]


def _merged(one: _Output, other: _Output) -> Found:
    return {**(one.found or {}), **(other.found or {})}
