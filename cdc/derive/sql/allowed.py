"""List what a definition may use: an allow-list, every entry of which is compared on real servers.

``tests/source/derive/test_dialect.py`` evaluates each entry in Postgres and in DuckDB, and
``tests/spark/derive/test_dialect.py`` in Spark. What differs between the first two is not here, but
in ``refused.py`` with a remedy; what Spark cannot say it refuses (``cdc/derive/spark``).
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final


class Group(Enum):
    """Names the headings under which the reference page lists the entries."""

    QUERY = "Queries"
    EXPRESSION = "Expressions"
    FUNCTION = "Functions"
    AGGREGATE = "Aggregates"
    WINDOW = "Window functions"
    TIME = "Windows of event time"
    TYPE = "Types of `CAST(x AS ...)` and `x::...`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Names something that a definition may use."""

    name: str
    group: Group
    spelling: str
    note: str = ""


def _entries(group: Group, *rows: tuple[str, str, str]) -> tuple[Entry, ...]:
    return tuple(
        Entry(name=name, group=group, spelling=text, note=note) for name, text, note in rows
    )


ENTRIES: Final = (
    *_entries(
        Group.QUERY,
        ("select", "SELECT x AS name FROM schema.table", "every output column has its own name"),
        ("distinct", "SELECT DISTINCT", ""),
        ("where", "WHERE", ""),
        ("group", "GROUP BY expressions, positions or output columns", ""),
        ("having", "HAVING", ""),
        ("inner_join", "JOIN t ON ...", ""),
        ("left_join", "LEFT JOIN t ON ...", ""),
        ("right_join", "RIGHT JOIN t ON ...", ""),
        ("full_join", "FULL JOIN t ON ...", ""),
        ("cross_join", "CROSS JOIN t, or FROM a, b", ""),
        ("using", "JOIN t USING (column)", ""),
        ("union", "UNION, UNION ALL", "different operators need subqueries, here and below"),
        ("intersect", "INTERSECT, INTERSECT ALL", ""),
        ("except", "EXCEPT, EXCEPT ALL", ""),
        ("with", "WITH name AS (SELECT ...)", "not recursive"),
        ("from_subquery", "FROM (SELECT ...) AS name", ""),
        ("scalar_subquery", "(SELECT ...) as a value", "at most one row, or the step fails"),
        ("in_subquery", "IN (SELECT ...), NOT IN (SELECT ...)", ""),
        ("exists", "EXISTS (SELECT ...), NOT EXISTS (SELECT ...)", ""),
    ),
    *_entries(
        Group.EXPRESSION,
        ("number", "12, 1.50", "1e5 only as 1e5::double precision"),
        ("string", "'text'", "not e'text'"),
        ("boolean", "TRUE, FALSE", ""),
        ("null", "NULL", "cast it where it is an output column"),
        ("typed_literal", "DATE '2024-01-31', TIMESTAMP '2024-01-31 10:00'", ""),
        ("interval", "INTERVAL '3 days'", "one whole number of days, hours, minutes or seconds"),
        ("compare", "= <> < <= > >=", "text is ordered by its bytes"),
        ("logic", "AND OR NOT", ""),
        ("is_null", "IS NULL, IS NOT NULL", ""),
        ("is_true", "IS TRUE, IS FALSE, IS NOT TRUE, IS NOT FALSE", ""),
        ("distinct_from", "IS DISTINCT FROM, IS NOT DISTINCT FROM", ""),
        ("between", "BETWEEN, NOT BETWEEN", ""),
        ("in_list", "IN (1, 2), NOT IN (1, 2)", ""),
        ("like", "LIKE 'pattern', NOT LIKE 'pattern'", "a constant without backslash"),
        ("plus", "a + b", "overflow stops the table, here and below; of double it is infinite"),
        ("minus", "a - b", ""),
        ("times", "a * b", "of decimals of up to 18 digits no more: cast to numeric(38, s)"),
        ("negate", "-a", ""),
        ("divide", "a::double precision / NULLIF(b, 0)", "or by a constant that is not 0"),
        ("modulo", "a % 7, a % NULLIF(b, 0)", "whole numbers and decimals"),
        ("join_text", "a || b", "not double precision"),
        ("case", "CASE WHEN ... THEN ... ELSE ... END", ""),
        ("at_time_zone", "ts AT TIME ZONE 'Europe/Berlin'", "a constant name of a region, or UTC"),
    ),
    *_entries(
        Group.FUNCTION,
        ("coalesce", "coalesce(a, b)", ""),
        ("nullif", "nullif(a, b)", ""),
        ("greatest", "greatest(a, b)", "NULL is skipped"),
        ("least", "least(a, b)", "NULL is skipped"),
        ("length", "length(text)", "in characters; also char_length"),
        ("substring", "substring(text, 2, 3)", "constants: from 1, and from 0; also substr"),
        ("left", "left(text, 2), left(text, -2)", "a constant; below 0: but the last ones"),
        ("right", "right(text, 2), right(text, -2)", "a constant; below 0: but the first ones"),
        ("strpos", "strpos(text, a), position(a IN text)", "0 if it is not there"),
        ("starts_with", "starts_with(text, a)", ""),
        ("split_part", "split_part(text, '/', 2)", "constants: a text, and a number from 1"),
        ("lower", 'lower(text COLLATE "C")', "the letters of ASCII alone"),
        ("upper", 'upper(text COLLATE "C")', "the letters of ASCII alone"),
        ("trim", "trim(text), trim(BOTH '/' FROM text)", "spaces or constants; also btrim"),
        ("ltrim", "ltrim(text), trim(LEADING '/' FROM text)", "as trim, at the beginning"),
        ("rtrim", "rtrim(text), trim(TRAILING '/' FROM text)", "as trim, at the end"),
        ("lpad", "lpad(text, 5, '0')", "constants: a length from 0, and a text or spaces"),
        ("rpad", "rpad(text, 5, '0')", "constants: a length from 0, and a text or spaces"),
        ("replace", "replace(text, a, b)", ""),
        ("translate", "translate(text, 'xy', 'z')", "constants"),
        ("md5", "md5(text)", "of its UTF-8"),
        ("abs", "abs(a)", ""),
        ("mod", "mod(a, 7)", "as %"),
        ("round", "round(a, 2)", "decimals; a constant from 0"),
        ("floor", "floor(a)", "decimals and double precision"),
        ("ceil", "ceil(a), ceiling(a)", "decimals and double precision"),
        ("date_trunc", "date_trunc('day', ts)", "timestamps; second to year, in UTC"),
        (
            "extract",
            "extract(year FROM ts)",
            "year to day, quarter, week, doy, dow, isodow, isoyear, epoch; of timestamps to second",
        ),
        ("cut_time", "cut_time()", "the commit time of the cut in the source, timestamptz"),
    ),
    *_entries(
        Group.AGGREGATE,
        ("count", "count(*), count(a)", ""),
        ("count_distinct", "count(DISTINCT a)", ""),
        ("sum", "sum(a), sum(DISTINCT a)", "whole numbers become numeric(38, 0)"),
        ("min", "min(a)", "text by its bytes"),
        ("max", "max(a)", "text by its bytes"),
        ("avg", "avg(a::double precision)", "depends on the order of the rows in the last digits"),
        ("bool_and", "bool_and(a)", ""),
        ("bool_or", "bool_or(a)", ""),
        ("filter", "sum(a) FILTER (WHERE b)", ""),
    ),
    *_entries(
        Group.WINDOW,
        ("over", "sum(a) OVER (PARTITION BY b ORDER BY c)", "sum, count, min, max"),
        ("row_number", "row_number() OVER (... ORDER BY a)", "the order must be total"),
        ("rank", "rank() OVER (... ORDER BY a)", ""),
        ("dense_rank", "dense_rank() OVER (... ORDER BY a)", ""),
        ("lag", "lag(a, 1, 0) OVER (... ORDER BY b)", "the order must be total"),
        ("lead", "lead(a, 1, 0) OVER (... ORDER BY b)", "the order must be total"),
        ("first_value", "first_value(a) OVER (... ORDER BY b)", "the order must be total"),
        ("last_value", "last_value(a) OVER (... ORDER BY b)", "the order must be total"),
        ("nulls", "ORDER BY a DESC NULLS LAST", "NULL is the largest by default"),
        (
            "range",
            "OVER (ORDER BY ts RANGE BETWEEN INTERVAL '1 hour' PRECEDING AND CURRENT ROW)",
            "sum, count, min, max; one column in the order",
        ),
    ),
    *_entries(
        Group.TIME,
        (
            "tumble",
            "FROM tumble(schema.table, ts, INTERVAL '1 hour')",
            "an origin may follow: TIMESTAMP '2024-01-01'",
        ),
        (
            "hop",
            "FROM hop(schema.table, ts, INTERVAL '5 minutes', INTERVAL '1 hour')",
            "the slide, then the size, which is 1 to 100 times the slide; an origin may follow",
        ),
        (
            "sessions",
            "FROM sessions(schema.table, ts, INTERVAL '30 minutes', key)",
            "the gap that still belongs to a session; no key, or several",
        ),
    ),
    *_entries(
        Group.TYPE,
        ("to_smallint", "smallint", "from text only a constant"),
        ("to_integer", "integer", "from text only a constant"),
        ("to_bigint", "bigint", "from text only a constant"),
        ("to_numeric", "numeric(p, s)", "p up to 38; not from double precision"),
        ("to_double", "double precision", ""),
        ("to_text", "text", "not from double precision"),
        ("to_date", "date", ""),
        ("to_timestamp", "timestamp", ""),
        ("to_timestamptz", "timestamptz", ""),
        ("to_boolean", "boolean", "from boolean and integer, from text only a constant"),
    ),
)  # fmt: skip

AGGREGATES: Final = frozenset({"count", "sum", "min", "max", "avg", "bool_and", "bool_or"})
RANKS: Final = frozenset({"row_number", "rank", "dense_rank"})
NEIGHBOURS: Final = frozenset({"lag", "lead", "first_value", "last_value"})
FUNCTIONS: Final = frozenset(
    {entry.name for entry in ENTRIES if entry.group is Group.FUNCTION}
    | AGGREGATES
    | RANKS
    | NEIGHBOURS
    | {entry.name for entry in ENTRIES if entry.group is Group.TIME}
    | {"cast", "ceiling", "position", "btrim", "substr", "char_length", "character_length"}
)
"""The names that may be written before a parenthesis."""
