"""Puts the rows of final windows back as they were when these became final, for ``policy: aside``.

The loaded input has the rows as they are at the cut. Of each key the first late row of a window
says what the window had: that row, or none.
"""

from collections.abc import Sequence

from cdc.derive.engine.calculator import Calculator, named
from cdc.derive.late.late_rows import EFFECT, OFFSET, START, Effect
from cdc.derive.late.rule import LateRule
from cdc.events.values.sql_text import postgres_name, postgres_string

_FROZEN = "wal2lake_frozen"


def restore(database: Calculator, rule: LateRule, key: Sequence[str]) -> None:
    """Change the loaded input, so that its final windows have what they had."""
    keys = [postgres_name(name) for name in key]
    order = f"{OFFSET}, {EFFECT} = {postgres_string(Effect.LEFT_OUT)}"
    first = f"row_number() OVER (PARTITION BY {', '.join([*keys, START])} ORDER BY {order})"
    rows, table = named(rule.rows), named(rule.table)
    database.run(f"CREATE TABLE {_FROZEN} AS SELECT * FROM {rows} QUALIFY {first} = 1")  # noqa: S608
    equal = " AND ".join(f"f.{name} = t.{name}" for name in keys)
    place = f"EPOCH_US(f.{START}) = {_start(rule, f't.{postgres_name(rule.window.time)}')}"
    there = f"SELECT TRUE FROM {_FROZEN} AS f WHERE {equal} AND {place}"  # noqa: S608
    database.run(f"DELETE FROM {table} AS t WHERE EXISTS ({there})")  # noqa: S608
    names = [name for name, _ in database.types(f"SELECT * FROM {table}")]  # noqa: S608
    listed = ", ".join(map(postgres_name, names))
    kept = f"SELECT {listed} FROM {_FROZEN} WHERE {EFFECT} = {postgres_string(Effect.KEPT)}"  # noqa: S608
    database.run(f"INSERT INTO {table} BY NAME {kept}")
    database.run(f"DROP TABLE {_FROZEN}")


def _start(rule: LateRule, time: str) -> str:
    """Return the microseconds at which the window of a time begins."""
    since, length = f"(EPOCH_US({time}) - {rule.window.origin:d})", rule.window.length
    return f"EPOCH_US({time}) - (({since} % {length:d}) + {length:d}) % {length:d}"
