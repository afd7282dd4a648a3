"""Read a SELECT over tables: the tables it names, and which of them each column belongs to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from cdc.derive.scope.refused import WholeError
from cdc.derive.scope.scope import Link, Occurrence
from cdc.derive.sql.event_window import ARGUMENT
from cdc.tables import TableId

_ADDED = ("window_start", "window_end")


@dataclass(slots=True)
class Leaf:
    """Collects the tables that a SELECT names, and the links between them.

    ``columns`` has those of each occurrence, as the table has them.
    """

    select: exp.Select
    occurrences: list[Occurrence] = field(default_factory=list)
    columns: list[Sequence[str]] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)

    def add(
        self,
        table: exp.Expr,
        columns: Mapping[TableId, Sequence[str]],
        *,
        is_condition: bool = False,
    ) -> int:
        """Take a table of FROM; return its number. Raises WholeError for anything else."""
        if not isinstance(table, exp.Table):
            raise WholeError("a subquery in FROM has other tables beside it: derive it as a table")
        name = TableId(table.db, table.name)
        window = table.args.get(ARGUMENT)
        one = Occurrence(
            table=name, name=table.alias_or_name, window=window, is_condition=is_condition
        )
        if window is not None and window.form == "sessions" and not one.together:
            raise WholeError("its sessions have no key")
        self.occurrences.append(one)
        self.columns.append(columns[name])
        return len(self.occurrences) - 1

    def owners(self, column: exp.Column, among: Sequence[int]) -> list[int]:
        """Return the occurrences that a column may belong to."""
        if column.table:
            return [number for number in among if self.occurrences[number].name == column.table]
        return [number for number in among if column.name in self._seen(number)]

    def stored(self, column: exp.Expr, among: Sequence[int]) -> tuple[int, str] | None:
        """Return the occurrence and name of a column that is one of a table's own, alone."""
        column = column.unnest()
        if not isinstance(column, exp.Column):
            return None
        found = self.owners(column, among)
        if len(found) != 1 or column.name not in self.columns[found[0]]:
            return None
        return found[0], column.name

    def _seen(self, number: int) -> Sequence[str]:
        added = _ADDED if self.occurrences[number].window is not None else ()
        return [*self.columns[number], *added]


def read_leaf(select: exp.Select, columns: Mapping[TableId, Sequence[str]]) -> Leaf:
    """Return the tables of FROM; every column of the SELECT is given the name of its table."""
    leaf = Leaf(select)
    leaf.add(select.args["from_"].this, columns)
    for join in select.args.get("joins") or []:
        leaf.add(join.this, columns)
    everywhere = range(len(leaf.occurrences))
    name_groups(select, lambda column: bool(leaf.owners(column, everywhere)))
    for part in (*select.selects, *_parts(select, "group", "having")):
        if part.find(exp.Query) is not None:
            raise WholeError("a subquery is a value: derive it as a table, and join it")
    for column in list(select.find_all(exp.Column)):
        if column.parent_select is select:
            _qualify(leaf, column)
    return leaf


def _parts(select: exp.Select, *names: str) -> list[exp.Expr]:
    parts = [select.args.get(name) for name in names]
    return [part for part in parts if part is not None]


def name_groups(select: exp.Select, is_input: Callable[[exp.Column], bool]) -> None:
    """Replace what GROUP BY names by an output's name; a column of an input goes before it."""
    group = select.args.get("group")
    outputs = {output.alias_or_name: output.unalias() for output in select.selects}
    for each in [] if group is None else list(group.expressions):
        bare = isinstance(each, exp.Column) and not each.table
        if bare and not is_input(each) and each.name in outputs:
            each.replace(outputs[each.name].copy())


def _qualify(leaf: Leaf, column: exp.Column) -> None:
    """Name the table of a column; one that USING has merged stays without."""
    found = leaf.owners(column, range(len(leaf.occurrences)))
    if len(found) == 1:
        name = leaf.occurrences[found[0]].name
        column.set("table", exp.to_identifier(name, quoted=True))
