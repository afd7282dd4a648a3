"""Numbers equal rows: the first of them is 1, and so is a row that has no equal."""

from typing import Final

from cdc.derive.engine.calculator import Calculator

_DIGESTED: Final = "wal2lake_digested"


def keep_numbered(database: Calculator, name: str, query: str, by: str, number: str) -> None:
    """Create the table ``name`` of a query's rows, with a ``number`` among those equal in ``by``.

    Most queries have no equal rows: to see that is cheaper than to number them.
    """
    database.run(f"CREATE TABLE {_DIGESTED} AS {query}")
    twins = f"SELECT 1 FROM {_DIGESTED} GROUP BY {by} HAVING count(*) > 1 LIMIT 1"  # noqa: S608
    numbers = f"row_number() OVER (PARTITION BY {by})" if database.values(twins) else "1::BIGINT"
    database.run(f"CREATE TABLE {name} AS SELECT *, {numbers} AS {number} FROM {_DIGESTED}")  # noqa: S608
    database.run(f"DROP TABLE {_DIGESTED}")
