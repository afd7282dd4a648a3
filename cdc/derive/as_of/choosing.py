"""Choose the history that a query reads for a table as it was."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cdc.derive.as_of.moment import Facts
from cdc.derive.history.history import OWN
from cdc.derive.sql.problem import Place
from cdc.tables import TableId


class UnkeptError(Exception):
    """Says that no history of a table has what a query asks, with the place and remedy."""

    def __init__(self, place: Place, what: str, remedy: str) -> None:
        super().__init__(what)
        self.place, self.what, self.remedy = place, what, remedy


@dataclass(frozen=True, slots=True)
class Declared:
    """Names the table of a history, and the columns that it tracks; none for all."""

    of: TableId
    track: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Histories:
    """Finds a table's history among the declared ones; derived tables in ``others`` have none."""

    declared: Mapping[TableId, Declared]
    others: Collection[TableId]

    def of_rows(self, table: TableId, facts: Facts) -> TableId:
        """Return the history of a table that says which transactions inserted its rows.

        Raises UnkeptError if there is none, or several.
        """
        if table in self.others:
            what = f"{table} is a derived table, whose rows no transaction inserts"
            raise UnkeptError(facts.place, what, "write AS OF a column with the time")
        return _only(table, facts, self._of(table, facts))

    def of_past(self, table: TableId, facts: Facts) -> TableId:
        """Return the history that has the used columns of a table as they were.

        A history may be named itself. Raises UnkeptError if there is none, or several.
        """
        if table in self.others:
            what = f"{table} is a derived table, and has no history"
            raise UnkeptError(facts.place, what, "name a captured table, which can have one")
        all_of_it = [table] if table in self.declared else self._of(table, facts)
        lacking = {one: _lacking(one, self.declared[one], facts) for one in all_of_it}
        fitting = [one for one, lack in lacking.items() if lack is None]
        for lack in lacking.values():
            if lack is not None and not fitting:
                raise lack
        return _only(table, facts, fitting)

    def _of(self, table: TableId, facts: Facts) -> Sequence[TableId]:
        found = sorted(name for name, one in self.declared.items() if one.of == table)
        if found:
            return found
        name = f"{table.schema}.{table.name}_past.sql"
        remedy = f"declare one: a file {name} with kind: history and table: {table}"
        raise UnkeptError(facts.place, f"{table} has no history", remedy)


def _only(table: TableId, facts: Facts, found: Sequence[TableId]) -> TableId:
    if len(found) > 1:
        what = f"{table} has several histories: {', '.join(map(str, found))}"
        raise UnkeptError(facts.place, what, "name the one to read in FROM, or keep one")
    return found[0]


def _lacking(history: TableId, declared: Declared, facts: Facts) -> UnkeptError | None:
    """Return what of the used columns a history does not have as it was."""
    if not declared.track:
        return None
    has = {*declared.track, *OWN}
    for name, place in facts.columns.items():
        if name not in has:
            what = f"the history {history} does not track {name}"
            remedy = (
                f"declare one with track: [{', '.join([*declared.track, name])}] and another name"
            )
            return UnkeptError(place, what, remedy)
    for name, place in facts.bare.items():
        if name not in has:
            what = f"{name} may be a column that the history {history} does not track"
            return UnkeptError(place, what, "write the table's name before it")
    return None
