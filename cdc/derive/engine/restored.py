"""Gives final rows what they had when they became final, for ``policy: aside``.

The loaded input has the rows as they are at the cut. Of each key the first late row of a window
says what the window had: that row, or none. For rows that wait there are versions of the input's.
Late rows that were admitted say nothing.
"""

from collections.abc import Sequence

from cdc.derive.engine.calculator import Calculator, named
from cdc.derive.late.late_rows import EFFECT, OFFSET, Effect
from cdc.derive.late.notes import open_notes, place_columns
from cdc.derive.late.rule import START, Bound, LateRule
from cdc.derive.late.versions import NAME, SCHEMA, no_versions, versions
from cdc.derive.sql.event_window import EventWindow
from cdc.events.values.sql_text import postgres_name, postgres_string

_FROZEN = "wal2lake_frozen"


def restore(database: Calculator, rule: LateRule, key: Sequence[str]) -> None:
    """Change the loaded input, so that its final windows have what they had.

    Beside an input that rows wait for, create the versions of its rows.
    """
    if isinstance(rule.window, Bound):
        names = [name for name, _ in database.types(f"SELECT * FROM {named(rule.table)}")]  # noqa: S608
        noted = f"({open_notes(named(rule.rows), rule, key)})"
        _keep_versions(database, versions(named(rule.table), noted, names, key))
    else:
        _put_back(database, rule, rule.window, key)


def declare_versions(database: Calculator, rule: LateRule) -> None:
    """Create what a query reads that waits for a declared table, without rows."""
    if isinstance(rule.window, Bound) and rule.policy == "aside":
        _keep_versions(database, no_versions(named(rule.table)))


def _keep_versions(database: Calculator, query: str) -> None:
    database.run(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    database.run(f"CREATE OR REPLACE VIEW {SCHEMA}.{NAME} AS {query}")


def _put_back(
    database: Calculator, rule: LateRule, window: EventWindow, key: Sequence[str]
) -> None:
    keys = [postgres_name(name) for name in key]
    order = f"{OFFSET}, {EFFECT} = {postgres_string(Effect.LEFT_OUT)}"
    first = f"row_number() OVER (PARTITION BY {place_columns(rule, key)} ORDER BY {order})"
    rows, table = f"({open_notes(named(rule.rows), rule, key)})", named(rule.table)
    database.run(f"CREATE TABLE {_FROZEN} AS SELECT * FROM {rows} QUALIFY {first} = 1")  # noqa: S608
    equal = " AND ".join(f"f.{name} = t.{name}" for name in keys)
    place = f"EPOCH_US(f.{START}) = {_start(window, f't.{postgres_name(window.time)}')}"
    there = f"SELECT TRUE FROM {_FROZEN} AS f WHERE {equal} AND {place}"  # noqa: S608
    database.run(f"DELETE FROM {table} AS t WHERE EXISTS ({there})")  # noqa: S608
    names = [name for name, _ in database.types(f"SELECT * FROM {table}")]  # noqa: S608
    listed = ", ".join(map(postgres_name, names))
    kept = f"SELECT {listed} FROM {_FROZEN} WHERE {EFFECT} = {postgres_string(Effect.KEPT)}"  # noqa: S608
    database.run(f"INSERT INTO {table} BY NAME {kept}")
    database.run(f"DROP TABLE {_FROZEN}")


def _start(window: EventWindow, time: str) -> str:
    """Return the microseconds at which the window of a time begins."""
    since, length = f"(EPOCH_US({time}) - {window.origin:d})", window.length
    return f"EPOCH_US({time}) - (({since} % {length:d}) + {length:d}) % {length:d}"
