"""Write the versions of rows that others wait for, for ``policy: aside``.

A row that waits has what was there when the watermark passed its bound. So the query reads versions
of the rows, each with the watermarks at which it came and went. What came or went behind the
watermark is a late row; all else was in time for every bound that it can meet.
"""

from collections.abc import Sequence
from typing import Final

from cdc.derive.late.late_rows import EFFECT, OFFSET, Effect
from cdc.events.values.sql_text import postgres_name, postgres_string

SCHEMA: Final = "_cdc_late"
NAME: Final = "versions"
SINCE: Final = "_cdc_since"
UNTIL: Final = "_cdc_until"
"""A version is there for the bounds behind the first watermark, up to and including the second."""
_MARK: Final = "_watermark"
_CAME, _LAST = "_cdc_came", "_cdc_last"
_LEFT_OUT, _KEPT = postgres_string(Effect.LEFT_OUT), postgres_string(Effect.KEPT)


def versions(table: str, noted: str, columns: Sequence[str], key: Sequence[str]) -> str:
    """Return the query for the versions of a table's rows, by its late rows; in DuckDB's words.

    A late row that was there before its event is a version that went then. One that its event made
    is the next that went, or is there still.
    """
    keys = ", ".join(map(postgres_name, key))
    order = f"PARTITION BY {keys} ORDER BY {OFFSET}, {EFFECT} = {_LEFT_OUT}"
    before = f"lag(CASE WHEN {EFFECT} = {_LEFT_OUT} THEN {_MARK} END) OVER ({order}) AS {_CAME}"
    is_last = f"lead(TRUE) OVER ({order}) IS NULL AS {_LAST}"
    late = f"SELECT *, {before}, {is_last} FROM {noted}"  # noqa: S608 - our names
    newest = (
        f"SELECT {keys}, {_MARK} AS {_CAME} FROM ({late}) WHERE {_LAST} AND {EFFECT} = {_LEFT_OUT}"  # noqa: S608
    )
    return (
        f"SELECT {_listed('t', columns)}, {_since('n')}, {_until()} "  # noqa: S608
        f"FROM {table} AS t LEFT JOIN ({newest}) AS n USING ({keys}) UNION ALL "
        f"SELECT {_listed('g', columns)}, {_since('g')}, g.{_MARK} "
        f"FROM ({late}) AS g WHERE g.{EFFECT} = {_KEPT}"
    )


def no_versions(table: str) -> str:
    """Return the query for a table of versions that has none."""
    return f"SELECT *, {_until(SINCE)}, {_until()} FROM {table} LIMIT 0"  # noqa: S608 - our names


def _listed(alias: str, columns: Sequence[str]) -> str:
    return ", ".join(f"{alias}.{postgres_name(name)}" for name in columns)


def _since(alias: str) -> str:
    return f"COALESCE({alias}.{_CAME}, TIMESTAMPTZ '-infinity') AS {postgres_name(SINCE)}"


def _until(name: str = UNTIL) -> str:
    return f"TIMESTAMPTZ 'infinity' AS {postgres_name(name)}"
