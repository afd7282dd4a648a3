"""Strikes out in pairs the rows that are in both of two tables."""

from cdc.derive.engine.calculator import Calculator
from cdc.derive.engine.digest import digest


def keep_net(database: Calculator, name: str, rows: str, others: str) -> None:
    """Create the table ``name`` of those ``rows`` that ``others`` do not have, each so often.

    Both are tables of the same columns. Digests decide: values that are equal may print
    differently, as 0 and -0 do.
    """
    outputs = database.outputs(f"SELECT * FROM {rows}")  # noqa: S608 - our names
    digested = f"SELECT *, {digest(outputs)} AS _cdc_digest FROM {{}}"  # noqa: S608
    listed = f"{digested.format(rows)} EXCEPT ALL {digested.format(others)}"
    database.run(f"CREATE TABLE {name} AS SELECT * EXCLUDE (_cdc_digest) FROM ({listed})")  # noqa: S608
