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
WINDOWED: Final = "windowed"
SINCE: Final = "_cdc_since"
UNTIL: Final = "_cdc_until"
"""A version is there for the bounds behind the first watermark, up to and including the second."""
_MARK: Final = "_watermark"
_CAME: Final = "_cdc_came"


def versions(table: str, noted: str, columns: Sequence[str], key: Sequence[str]) -> str:
    """Return the query for the versions of a table's rows, by its late rows; in DuckDB's words.

    A late row that was there before its event is a version that went then. It and the row that is
    there came with the late event before, or after it and in time: then all its bounds are later.
    """
    keys = ", ".join(map(postgres_name, key))
    order = f"{OFFSET}, {EFFECT} = {postgres_string(Effect.LEFT_OUT)}"
    before = f"lag({_MARK}) OVER (PARTITION BY {keys} ORDER BY {order}) AS {_CAME}"
    newest = f"SELECT {keys}, max({_MARK}) AS {_CAME} FROM {noted} GROUP BY {keys}"  # noqa: S608
    return (
        f"SELECT {_listed('t', columns)}, {_since('t')}, {_until()} "  # noqa: S608 - our names
        f"FROM (SELECT * FROM {table} LEFT JOIN ({newest}) USING ({keys})) AS t UNION ALL "
        f"SELECT {_listed('g', columns)}, {_since('g')}, g.{_MARK} "
        f"FROM (SELECT *, {before} FROM {noted}) AS g "
        f"WHERE g.{EFFECT} = {postgres_string(Effect.KEPT)}"
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
