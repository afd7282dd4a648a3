"""Gives final rows what they had when they became final, for ``policy: aside``.

The loaded input has the rows as they are at the cut. Of each key the first late row of a window
says what the window had: that row, or none. So the query reads the rows of the windows from here,
and of an input that rows wait for its versions. Late rows that were admitted say nothing.
"""

from collections.abc import Sequence

from sqlglot import exp

from cdc.derive.engine.calculator import Calculator, named
from cdc.derive.late.late_rows import EFFECT, OFFSET, Effect
from cdc.derive.late.notes import open_notes, place_columns
from cdc.derive.late.rule import END, START, Bound, LateRule
from cdc.derive.late.versions import NAME, SCHEMA, WINDOWED, no_versions, versions
from cdc.derive.sql import printing
from cdc.derive.sql.event_window import ARGUMENT
from cdc.events.values.sql_text import postgres_name, postgres_string
from cdc.tables import TableId

_FROZEN = f"{SCHEMA}.frozen"
_COUNTED = TableId(SCHEMA, "counted")
_ROW = "t"


def restore(database: Calculator, rule: LateRule, key: Sequence[str]) -> None:
    """Create what the query reads, so that its final rows have what they had."""
    noted = f"({open_notes(named(rule.rows), rule, key)})"
    if isinstance(rule.window, Bound):
        names = [name for name, _ in _columns(database, rule)]
        _keep(database, NAME, versions(named(rule.table), noted, names, key))
        return
    order = f"{OFFSET}, {EFFECT} = {postgres_string(Effect.LEFT_OUT)}"
    first = f"row_number() OVER (PARTITION BY {place_columns(rule, key)} ORDER BY {order})"
    database.run(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    frozen = f"SELECT * FROM {noted} QUALIFY {first} = 1"  # noqa: S608 - our names
    database.run(f"CREATE OR REPLACE TABLE {_FROZEN} AS {frozen}")
    if not rule.is_of_sessions:
        windows = _windows(rule, rule.table)
        _keep(database, WINDOWED, _counted(database, key, windows, "window_start"))
        return
    rows = f"{named(rule.table)} AS {_ROW}"
    _keep(database, _COUNTED.name, _counted(database, key, rows, rule.window.time))
    _keep(database, WINDOWED, f"SELECT * FROM {_windows(rule, _COUNTED)}")  # noqa: S608


def declare_restored(database: Calculator, rule: LateRule) -> None:
    """Create what a query over a declared table reads, without rows."""
    if rule.policy != "aside":
        return
    if isinstance(rule.window, Bound):
        _keep(database, NAME, no_versions(named(rule.table)))
    else:
        windows = _windows(rule, rule.table)
        _keep(database, WINDOWED, f"SELECT * FROM {windows} LIMIT 0")  # noqa: S608 - our names


def _counted(database: Calculator, key: Sequence[str], rows: str, start: str) -> str:
    """Return the query for what counts of ``rows``, named ``_ROW``.

    Each of them is in a window whose start is in the column ``start``. That of a session follows
    from its rows, so each is taken as the session that it would be by itself.
    """
    return f"{_open(key, rows, start)} UNION ALL BY NAME {_kept(database, rows)}"


def _open(key: Sequence[str], rows: str, start: str) -> str:
    """Return the query for the rows that count because no late row says more."""
    equal = " AND ".join(f"f.{name} = {_ROW}.{name}" for name in map(postgres_name, key))
    there = (
        f"SELECT TRUE FROM {_FROZEN} AS f WHERE {equal} "  # noqa: S608 - our names
        f"AND EPOCH_US(f.{START}) = EPOCH_US({_ROW}.{postgres_name(start)})"
    )
    return f"SELECT {_ROW}.* FROM {rows} WHERE NOT EXISTS ({there})"  # noqa: S608


def _kept(database: Calculator, rows: str) -> str:
    """Return the query for the rows that count, though the source has them no more."""
    kinds = dict(database.types(f"SELECT * FROM {rows}"))  # noqa: S608 - our names
    from_ = {"window_start": START, "window_end": END}
    listed = ", ".join(
        f"CAST({postgres_name(from_.get(name, name))} AS {kind}) AS {postgres_name(name)}"
        for name, kind in kinds.items()
    )
    kept = f"{EFFECT} = {postgres_string(Effect.KEPT)}"
    return f"SELECT {listed} FROM {_FROZEN} WHERE {kept}"  # noqa: S608 - our names


def _windows(rule: LateRule, rows: TableId) -> str:
    """Return a table in the rule's windows, named ``_ROW``, in DuckDB's words."""
    alias = exp.TableAlias(this=_name(_ROW))
    table = exp.Table(this=_name(rows.name), db=_name(rows.schema), alias=alias)
    table.set(ARGUMENT, rule.window)
    return printing.duckdb(table)


def _columns(database: Calculator, rule: LateRule) -> list[tuple[str, str]]:
    return database.types(f"SELECT * FROM {named(rule.table)}")  # noqa: S608 - our names


def _keep(database: Calculator, name: str, query: str) -> None:
    database.run(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
    database.run(f"CREATE OR REPLACE VIEW {SCHEMA}.{name} AS {query}")


def _name(name: str) -> exp.Identifier:
    return exp.to_identifier(name, quoted=True)
