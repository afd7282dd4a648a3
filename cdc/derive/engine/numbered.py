"""Numbers equal rows: the first of them is 1, and so is a row that has no equal."""

from typing import Final

from cdc.derive.engine.calculator import Calculator

_NUMBERED: Final = "wal2lake_numbered"


def keep_numbered(database: Calculator, name: str, query: str, by: str, number: str) -> None:
    """Create the table ``name`` of a query's rows, with a ``number`` among those equal in ``by``.

    Most queries have no equal rows: to see that is cheaper than to number them.
    """
    database.run(f"CREATE TABLE {name} AS {query}")
    twins = f"SELECT 1 FROM {name} GROUP BY {by} HAVING count(*) > 1 LIMIT 1"  # noqa: S608
    if not database.values(twins):
        database.run(f"ALTER TABLE {name} ADD COLUMN {number} BIGINT DEFAULT 1")
        return
    numbers = f"row_number() OVER (PARTITION BY {by}) AS {number}"
    database.run(f"CREATE TABLE {_NUMBERED} AS SELECT *, {numbers} FROM {name}")  # noqa: S608
    database.run(f"DROP TABLE {name}")
    database.run(f"ALTER TABLE {_NUMBERED} RENAME TO {name}")
