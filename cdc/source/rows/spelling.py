"""Define how Postgres spells a column's values for a reading, as SQL templates with ``{c}``.

A value is the type's own output with the settings of cdc/source/server/printing.py, except where
the lake keeps another form that the connector writes. An array is a JSON array of such strings,
because reading its own output, which writes NULL and ``"NULL"``, would need a parser.
``cdc/operations/resnapshot/values.py`` turns these strings into the lake's values.
"""

from collections.abc import Callable
from typing import Final

from cdc.events.values.lake_types import PgType, canonical
from cdc.events.values.sql_text import postgres_string
from cdc.source.rows.hstore import connector_json
from cdc.source.rows.masking import masked_sql

ODD_ARRAY: Final = "odd"
"""Replaces the JSON of an array with several dimensions, or whose first index is not 1.

The lake's arrays have one dimension and start at 1, so such an array cannot be kept exactly.
"""

# format() uses the type's output function: a cast to text would strip the blanks of a char(n).
# num_nulls() is used because IS NULL is true for a composite value whose fields are all NULL.
_PLAIN: Final = "CASE WHEN num_nulls({c}) = 0 THEN format('%s', {c}) END"
_MONEY: Final = "{c}::numeric::text"
_HSTORE: Final = "{c}::json::text"
_SCALARS: Final = {"money": _MONEY, "hstore": _HSTORE}


def spelling(pg: PgType, mask: str = "") -> str:
    """Return the SQL template for a column's value as text; ``{c}`` stands for the column.

    ``mask`` is what is left of the value (cdc/config/masks.py). NULL stays NULL.
    """
    return masked_sql(_spelling(pg), mask)


def _spelling(pg: PgType) -> str:
    element = pg.element
    if element is None:
        return _scalar(pg)
    one = spelled("e", element)
    listed = (
        f"(SELECT COALESCE(json_agg({one} ORDER BY i), '[]')::text "  # noqa: S608 - of constants
        "FROM unnest({c}) WITH ORDINALITY AS u(e, i))"
    )
    odd = "array_ndims({c}) > 1 OR array_lower({c}, 1) <> 1"
    mark = postgres_string(ODD_ARRAY)
    return f"CASE WHEN {{c}} IS NULL THEN NULL WHEN {odd} THEN {mark} ELSE {listed} END"


def copied(pg: PgType, mask: str = "") -> str:
    """Return the SQL template for a column of a COPY; the text is that of ``spelling``.

    COPY uses the type's output function by itself, which costs a fraction of a call of format().
    """
    template = spelling(pg, mask)
    return "{c}" if template == _PLAIN else template


def spelled(quoted: str, pg: PgType) -> str:
    """Return the SQL for the text of a column, whose name must be quoted already."""
    return spelling(pg).replace("{c}", quoted)


def _scalar(pg: PgType) -> str:
    return _SCALARS.get(canonical(pg.name), _PLAIN)


def respelling(pg: PgType) -> Callable[[str], str] | None:
    """Return the function from Postgres's text to the connector's, where SQL cannot do it."""
    return connector_json if canonical(pg.name) == "hstore" else None
