"""Write a query over tables as they were as one over their histories.

A table whose rows' transactions are asked is read from its own history too: the rows of now, which
are those of the table.
"""

from typing import Final

from sqlglot import exp, parse_one

from cdc.derive.as_of.choosing import Histories
from cdc.derive.as_of.moment import FACTS, is_by_commit, sources
from cdc.derive.history.history import (
    COMMIT_EPOCH,
    COMMIT_LSN,
    EPOCH,
    TO_LSN,
    VALID_FROM,
    VALID_LSN,
    VALID_TO,
)
from cdc.derive.sql.nodes import AS_OF
from cdc.events.values.sql_text import postgres_name
from cdc.tables import TableId

_BY_TIME: Final = (
    f"{{at}} IS NOT NULL AND ({{past}}.{VALID_FROM} IS NULL OR {{past}}.{VALID_FROM} <= {{at}}) "
    f"AND ({{past}}.{TO_LSN} IS NULL OR {{past}}.{VALID_TO} > {{at}})"
)
"""Of the versions of a row one at most; NULL has none, and a version without a time reaches back.

One that ended before any commit was seen has no time of its end, and is not taken.
"""
_BY_COMMIT: Final = (
    f"{{past}}.{EPOCH} BETWEEN {{row}}.{COMMIT_EPOCH} AND {{row}}.{COMMIT_EPOCH} "
    f"AND {{past}}.{VALID_LSN} <= {{row}}.{COMMIT_LSN} "
    f"AND ({{past}}.{TO_LSN} IS NULL OR {{past}}.{TO_LSN} > {{row}}.{COMMIT_LSN})"
)
"""No equality of epochs: a step would follow it from a changed row to every other."""


class Rewriting:
    """Rewrites the query of one definition so that histories take the places of tables.

    ``moved`` has these pairs, and ``by_rows`` the tables among them whose rows of now are read.
    Raises UnkeptError where no history says what is asked.
    """

    def __init__(self, query: exp.Query, histories: Histories) -> None:
        self.tree = query.copy()
        self.moved: list[tuple[TableId, TableId]] = []
        self.by_rows: set[TableId] = set()
        self._histories = histories
        for select in list(self.tree.find_all(exp.Select)):
            for source in sources(select):
                if isinstance(source.this, exp.Table) and source.this.args.get(AS_OF) is not None:
                    self._read_past(select, source)

    @property
    def tables(self) -> set[TableId]:
        """Return the tables that the query reads."""
        return {_id(table) for table in self.tree.find_all(exp.Table) if table.db}

    def _read_past(self, select: exp.Select, source: exp.Expr) -> None:
        table = source.this
        moment = table.args.pop(AS_OF)
        past = postgres_name(table.alias_or_name)
        self._move(table, self._histories.of_past(_id(table), table.meta[FACTS]))
        if is_by_commit(moment):
            self._read_rows(select, moment.table)
            condition = _BY_COMMIT.format(past=past, row=postgres_name(moment.table))
        else:
            condition = _BY_TIME.format(past=past, at=moment.sql("postgres"))
        _add(select, source, condition)

    def _read_rows(self, select: exp.Select, name: str) -> None:
        """Read the rows of now, with their transactions, from the table's own history."""
        source = next(one for one in sources(select) if one.this.alias_or_name == name)
        table = source.this
        if _id(table) in self._histories.declared:
            return  # it is one, or has been moved
        self.by_rows.add(_id(table))
        self._move(table, self._histories.of_rows(_id(table), table.meta[FACTS]))
        _add(select, source, f"{postgres_name(name)}.{TO_LSN} IS NULL")

    def _move(self, table: exp.Table, to: TableId) -> None:
        name = table.alias_or_name
        self.moved.append((_id(table), to))
        table.set("db", exp.to_identifier(to.schema, quoted=True))
        table.set("this", exp.to_identifier(to.name, quoted=True))
        table.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))


def _add(select: exp.Select, source: exp.Expr, text: str) -> None:
    """Add a condition on the rows of a table of FROM, which no join of the SELECT can lack."""
    condition = parse_one(text, read="postgres")
    on = source.args.get("on")
    if on is not None:
        source.set("on", exp.and_(on, condition, copy=False))
        return
    where = select.args.get("where")
    given = [] if where is None else [where.this]
    select.set("where", exp.Where(this=exp.and_(*given, condition, copy=False)))


def _id(table: exp.Table) -> TableId:
    return TableId(table.db, table.name)
