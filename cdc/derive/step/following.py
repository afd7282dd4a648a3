"""Takes the changed rows of an input out of the copy that is kept of it, and into it."""

from collections.abc import Callable, Sequence

from cdc.derive.engine.calculator import Calculator, named
from cdc.derive.engine.digest import digest
from cdc.derive.step.changes import net_rows
from cdc.events.values.sql_text import postgres_name
from cdc.tables import TableId

_Places = Callable[[Calculator, str, Sequence[str], str], str]


def follow(database: Calculator, table: TableId, columns: Sequence[str]) -> bool:
    """Bring a table of these columns on by its ``net_rows``, each as often as it is there.

    Return False, and leave the table, if it lacks rows that are to go.
    """
    return any(_applied(database, table, columns, places) for places in (_near, _exact))


def _applied(database: Calculator, table: TableId, columns: Sequence[str], places: _Places) -> bool:
    removed, added = net_rows(table)
    listed = ", ".join(map(postgres_name, columns))
    database.run("BEGIN TRANSACTION")
    wanted = database.count(removed)
    is_whole = not wanted
    if wanted:
        gone = places(database, named(table), columns, removed)
        deleted = database.values(f"DELETE FROM {named(table)} WHERE rowid IN ({gone})")  # noqa: S608
        is_whole = list(deleted) == [(wanted,)]
    database.run(f"INSERT INTO {named(table)} BY NAME SELECT {listed} FROM {added}")  # noqa: S608
    database.run("COMMIT" if is_whole else "ROLLBACK")
    return is_whole


def _near(_: Calculator, table: str, columns: Sequence[str], removed: str) -> str:
    """Return a query for the places of the rows that the engine takes for removed ones.

    If these are as many, they are the removed ones: a table has all rows that are taken out of it.
    """
    equal = " AND ".join(
        f"t.{postgres_name(name)} IS NOT DISTINCT FROM r.{postgres_name(name)}" for name in columns
    )
    return f"SELECT t.rowid FROM {table} AS t SEMI JOIN {removed} AS r ON {equal}"  # noqa: S608


def _exact(database: Calculator, table: str, columns: Sequence[str], removed: str) -> str:
    """Return a query for the places of as many equal rows as are removed; digests decide."""
    outputs = database.outputs(f"SELECT * FROM {table}")  # noqa: S608 - our name
    row = f"{digest(outputs)} AS row"
    near = _near(database, table, columns, removed)
    rows = f"SELECT t.rowid AS place, {row} FROM {table} AS t WHERE t.rowid IN ({near})"  # noqa: S608
    numbered = f"SELECT *, row_number() OVER (PARTITION BY row) AS copy FROM ({rows})"  # noqa: S608
    counted = f"SELECT {row}, count(*) AS copies FROM {removed} GROUP BY ALL"  # noqa: S608
    return f"SELECT place FROM ({numbered}) JOIN ({counted}) USING (row) WHERE copy <= copies"  # noqa: S608
