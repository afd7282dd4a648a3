"""Write which late rows still hold: those that nobody has admitted since.

A table of late rows only grows. Where late rows are admitted, it gets one row more for each place
that they are about, a key in a window. That row has the offset up to which the log had been read:
late rows up to there say nothing of the place any more, and the next one decides again.
"""

from collections.abc import Sequence

from cdc.derive.late.late_rows import CUT, EFFECT, OFFSET, Effect
from cdc.derive.late.rule import LateRule
from cdc.events.values.sql_text import postgres_name, postgres_string

ADMITTED = f"{EFFECT} = {postgres_string(Effect.ADMITTED)}"
"""The condition for the rows that say what was admitted."""


def open_notes(rows: str, rule: LateRule, key: Sequence[str]) -> str:
    """Return the query for the late rows that hold, in DuckDB's words."""
    seen = "" if rule.admissions is None else f" AND {CUT} <= {rule.admissions:d}"
    within = f"OVER (PARTITION BY {place_columns(rule, key)})"
    newest = f"max({OFFSET}) FILTER (WHERE {ADMITTED}{seen}) {within}"
    open_ones = f"NOT ({ADMITTED}) AND {OFFSET} > COALESCE({newest}, -1)"
    return f"SELECT * FROM {rows} QUALIFY {open_ones}"  # noqa: S608 - our names


def place_columns(rule: LateRule, key: Sequence[str]) -> str:
    """Return the columns of a place, as a list in SQL."""
    return ", ".join(map(postgres_name, rule.place(key)))
