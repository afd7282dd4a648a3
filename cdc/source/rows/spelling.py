"""How Postgres spells a column's values for a reading: SQL text around ``{c}``.

It is the type's own output with the settings of ``cdc/source/server/printing.py``, except where the
connector writes something else that the lake keeps. An array is a JSON array of such texts, for
its own output does not tell the text ``NULL`` from a NULL without a parser of its own.
``cdc/operations/resnapshot/values.py`` makes the lake's values of these texts.
"""

from collections.abc import Callable
from typing import Final

from cdc.events.values.lake_types import PgType, canonical
from cdc.events.values.sql_text import postgres_string
from cdc.source.rows.hstore import connector_json

ODD_ARRAY: Final = "odd"
"""Instead of JSON: an array of several dimensions, or whose first index is not 1.

The lake's arrays have one dimension and count from 1, so such a one would come out as another.
"""

# Through the type's output function: a cast to text would cut the spaces of a char(n), and a row
# of nothing but NULLs is not NULL, whatever IS NULL says of it.
_PLAIN: Final = "CASE WHEN num_nulls({c}) = 0 THEN format('%s', {c}) END"
_MONEY: Final = "{c}::numeric::text"
_HSTORE: Final = "{c}::json::text"
_SCALARS: Final = {"money": _MONEY, "hstore": _HSTORE}


def spelling(pg: PgType) -> str:
    """The text of a column's value, NULL for NULL; the column's name goes where ``{c}`` stands."""
    element = pg.element
    if element is None:
        return _scalar(pg)
    one = spelled("e", element)
    listed = (
        f"(SELECT COALESCE(json_agg({one} ORDER BY i), '[]')::text "  # noqa: S608 - of constants
        "FROM unnest({c}) WITH ORDINALITY AS u(e, i))"
    )
    odd = "array_ndims({c}) > 1 OR array_lower({c}, 1) <> 1"
    marked = postgres_string(ODD_ARRAY)
    return f"CASE WHEN {{c}} IS NULL THEN NULL WHEN {odd} THEN {marked} ELSE {listed} END"


def spelled(quoted: str, pg: PgType) -> str:
    """The text of the column of that name, which SQL reads as it is."""
    return spelling(pg).replace("{c}", quoted)


def _scalar(pg: PgType) -> str:
    return _SCALARS.get(canonical(pg.name), _PLAIN)


def respelling(pg: PgType) -> Callable[[str], str] | None:
    """What makes the connector's text of Postgres's, where SQL cannot say it."""
    return connector_json if canonical(pg.name) == "hstore" else None
