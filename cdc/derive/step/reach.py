"""Finds the values of the scope key that the changed rows of the inputs lead to.

From the changed rows of one input the links are followed to the rows of all others, both as they
were and as they are. The query's joins over those rows alone, before and after, have every row that
has come or gone, and so every value of the scope key that it belongs to. A value too many costs a
calculation; a value too few would leave a wrong row.

Inner joins over the rows of before and after together have all that, too, and more seldom. With
outer joins they would not: what is joined to a row hides that it had no match.
"""

from collections.abc import Collection, Iterator, Sequence

from cdc.derive.engine.calculator import Calculator, named
from cdc.derive.engine.output_types import Output
from cdc.derive.scope.scope import (
    DIRTY,
    SCHEMA,
    Branch,
    Link,
    Occurrence,
    Scope,
    column,
    restricted,
)
from cdc.derive.step.changes import added_rows, removed_rows
from cdc.events.values.sql_text import postgres_name
from cdc.tables import TableId

_SIDES = ("old", "new")
_BOTH = ("both",)
"""One side: the rows of before and after together."""


def find_dirty(
    database: Calculator,
    scope: Scope,
    keys: Sequence[Output],
    changed: Collection[TableId],
    closing: str = "",
) -> int:
    """Create the table DIRTY and return how many values it has; ``keys`` are the key's columns.

    Those of ``closing``, rows and a condition, are among them.
    """
    listed = ", ".join(f"CAST(NULL AS {one.type}) AS {column(n)}" for n, one in enumerate(keys))
    database.run(f"CREATE TABLE {SCHEMA}.found AS SELECT {listed} LIMIT 0")
    for branch in scope.branches:
        for number, occurrence in enumerate(branch.occurrences):
            if occurrence.table in changed:
                _Reach(database, branch, keys, changed).follow(number)
    if closing:
        stored = ", ".join(one.quoted for one in keys)
        database.run(f"INSERT INTO {SCHEMA}.found SELECT {stored} FROM {closing}")  # noqa: S608
    database.run(f"CREATE TABLE {SCHEMA}.{DIRTY} AS SELECT DISTINCT * FROM {SCHEMA}.found")  # noqa: S608
    return database.count(f"{SCHEMA}.{DIRTY}")


class _Reach:
    """Follows the changes of one occurrence through a branch."""

    def __init__(
        self,
        database: Calculator,
        branch: Branch,
        keys: Sequence[Output],
        changed: Collection[TableId],
    ) -> None:
        self._database, self._branch = database, branch
        self._keys, self._changed = keys, changed
        self._sides = _BOTH if branch.is_inner else _SIDES
        self._rows: dict[tuple[str, int], str] = {}  # by side and occurrence, the table of them

    def follow(self, start: int) -> None:
        """Add what the changed rows of an occurrence lead to."""
        self._begin(start)
        for link, known, next_one in _outward(self._branch, start):
            self._go(link, known, next_one)
        for side in self._sides:
            self._join(side)

    def _begin(self, number: int) -> None:
        occurrence = self._branch.occurrences[number]
        sides = [removed_rows(occurrence.table), added_rows(occurrence.table)]
        if self._branch.is_inner:
            sides = ["(SELECT * FROM {} UNION ALL SELECT * FROM {})".format(*sides)]  # noqa: S608
        for side, rows in zip(self._sides, sides, strict=True):
            self._rows[side, number] = rows
        self._complete(number, occurrence)

    def _go(self, link: Link, known: int, number: int) -> None:
        """Take the rows of an occurrence that are linked to those of a known one."""
        pairs = link.columns if known == link.other else [(b, a) for a, b in link.columns]
        here, there = zip(*pairs, strict=True)
        occurrence = self._branch.occurrences[number]
        self._take(number, self._values(known, there, here), here, "=")
        self._complete(number, occurrence)

    def _complete(self, number: int, occurrence: Occurrence) -> None:
        """Take all rows that are needed together with those there are."""
        names = occurrence.together
        if names:
            keys = f"{SCHEMA}.keys_{number}"
            values = self._values(number, names, names)
            self._database.run(f"CREATE OR REPLACE TABLE {keys} AS {values}")
            self._take(number, f"SELECT * FROM {keys}", names, "IS NOT DISTINCT FROM")  # noqa: S608

    def _take(self, number: int, values: str, names: Sequence[str], equals: str) -> None:
        """Take the rows of an occurrence that have these values, as they were and as they are."""
        table = self._branch.occurrences[number].table
        listed = self._columns(table) if table in self._changed else "r.*"
        condition = " AND ".join(f"r.{_q(name)} {equals} e.{_q(name)}" for name in names)

        def among(rows: str) -> str:
            return f"SELECT {listed} FROM {rows} AS r SEMI JOIN ({values}) AS e ON {condition}"  # noqa: S608

        new, is_changed = among(named(table)), table in self._changed
        gone = f" UNION ALL {among(removed_rows(table))}" if is_changed else ""
        if self._branch.is_inner:
            self._create(number, f"{new}{gone}")
        else:
            came = f" EXCEPT ALL {among(added_rows(table))}" if is_changed else ""
            self._create(number, f"({new}{came}){gone}", new)

    def _columns(self, table: TableId) -> str:
        """List the columns of changed rows: the table itself may have more, in another order."""
        found = self._database.types(f"SELECT * FROM {added_rows(table)}")  # noqa: S608
        return ", ".join(f"r.{_q(name)}" for name, _ in found)

    def _create(self, number: int, *sides: str) -> None:
        for side, rows in zip(self._sides, sides, strict=True):
            name = self._rows[side, number] = f"{SCHEMA}.{side}_{number}"
            self._database.run(f"CREATE OR REPLACE TABLE {name} AS {rows}")

    def _values(self, number: int, names: Sequence[str], called: Sequence[str]) -> str:
        """Return a query for the values that columns have in the rows of both sides."""
        pairs = zip(names, called, strict=True)
        listed = ", ".join(f"{_q(name)} AS {_q(other)}" for name, other in pairs)
        sides = (f"SELECT {listed} FROM {self._rows[side, number]}" for side in self._sides)  # noqa: S608
        return " UNION ".join(sides)

    def _join(self, side: str) -> None:
        for number, occurrence in enumerate(self._branch.occurrences):
            if not occurrence.is_condition:
                restrict(self._database, number, self._rows[side, number])
        keys = enumerate(self._keys)
        typed = ", ".join(f"CAST({column(number)} AS {one.type})" for number, one in keys)
        found = f"SELECT {typed} FROM ({self._branch.reached})"  # noqa: S608 - of a checked definition
        self._database.run(f"INSERT INTO {SCHEMA}.found {found}")


def restrict(database: Calculator, number: int, rows: str) -> None:
    """Let queries read these rows in the place of an occurrence's table."""
    name = f"{SCHEMA}.{restricted(number)}"
    database.run(f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM {rows}")  # noqa: S608 - our names


def _outward(branch: Branch, start: int) -> Iterator[tuple[Link, int, int]]:
    """Yield each link with the occurrence that is known and the next one, from the start on.

    What a condition asks is only a start: rows are not looked for there.
    """
    known, left = {start}, list(branch.links)
    while True:
        link = next((one for one in left if (one.one in known) != (one.other in known)), None)
        if link is None:
            return
        left.remove(link)
        here, there = (link.one, link.other) if link.one in known else (link.other, link.one)
        if not branch.occurrences[there].is_condition:
            known.add(there)
            yield link, here, there


def _q(name: str) -> str:
    return postgres_name(name)
