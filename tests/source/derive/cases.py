"""Name expressions and queries for every entry of the allow-list.

An expression is evaluated for each row of ``dialect.v``; what begins with SELECT or WITH is a whole
query.
"""

from typing import Final

from tests.source.derive import text_cases, window_cases

_AGGREGATED: Final = "SELECT o, {0} AS x FROM dialect.v WHERE id NOT IN (5, 6) GROUP BY o"
_WINDOW: Final = "SELECT id, {0} AS x FROM dialect.v WHERE id NOT IN (5, 6)"


def _groups(*aggregates: str) -> tuple[str, ...]:
    return tuple(_AGGREGATED.format(each) for each in aggregates)


def _windows(*functions: str) -> tuple[str, ...]:
    return tuple(_WINDOW.format(each) for each in functions)


def _of_all(form: str, columns: str = "i n b d e f t dt ts tz o") -> tuple[str, ...]:
    return tuple(form.format(column) for column in columns.split())


QUERIES: Final[dict[str, tuple[str, ...]]] = {
    "select": (
        "SELECT id, n AS other, 'x' AS t FROM dialect.v",
        "SELECT id, i - 1 AS n, n AS m FROM dialect.v WHERE n < 3",
        "SELECT id, -d AS d, row_number() OVER (ORDER BY d, id) AS r FROM dialect.v WHERE d < 9",
    ),
    "distinct": _of_all("SELECT DISTINCT {0} AS x FROM dialect.v", "i n b d e t dt ts tz o"),
    "where": ("SELECT id FROM dialect.v WHERE n > 1", "SELECT id FROM dialect.v WHERE o"),
    "group": (
        "SELECT o, n % 2 AS m, count(*) AS c FROM dialect.v GROUP BY o, n % 2",
        "SELECT date_trunc('month', ts) AS m, count(*) AS c FROM dialect.v GROUP BY 1",
        "SELECT f, count(*) AS c FROM dialect.v WHERE id <> 2 GROUP BY f",
        "SELECT t || u AS tu, sum(d::numeric(38,2)) AS c FROM dialect.v GROUP BY t || u",
        "SELECT e::text AS x, count(*) AS c FROM dialect.v GROUP BY 1",
        "SELECT o, sum(n) AS n FROM dialect.v GROUP BY o",
        "SELECT n % 2 AS n, count(*) AS c FROM dialect.v GROUP BY n",
        "SELECT o AS n, sum(n) AS o FROM dialect.v GROUP BY o",
        "SELECT date_trunc('month', ts) AS mon, count(*) AS c FROM dialect.v GROUP BY mon",
    ),
    "having": (
        "SELECT o AS n, sum(n) AS c FROM dialect.v GROUP BY o HAVING max(n) > 3",
        "SELECT o, count(*) AS c FROM dialect.v GROUP BY o HAVING count(*) > 3",
    ),
    "inner_join": ("SELECT v.id, w.id AS w FROM dialect.v JOIN dialect.w ON v.n = w.n",),
    "left_join": ("SELECT v.id, w.id AS w FROM dialect.v LEFT JOIN dialect.w ON v.t = w.t",),
    "right_join": ("SELECT v.id, w.id AS w FROM dialect.v RIGHT JOIN dialect.w ON v.n = w.n",),
    "full_join": ("SELECT v.id, w.id AS w FROM dialect.v FULL OUTER JOIN dialect.w ON v.n = w.n",),
    "cross_join": (
        "SELECT v.id, w.id AS w FROM dialect.v CROSS JOIN dialect.w",
        "SELECT v.id, w.id AS w FROM dialect.v, dialect.w WHERE v.n = w.n",
    ),
    "using": (
        "SELECT n, v.id, w.id AS w FROM dialect.v FULL JOIN dialect.w USING (n)",
        "SELECT id, v.n, w.n AS w FROM dialect.v JOIN dialect.w USING (id)",
    ),
    "union": (
        "SELECT n, t FROM dialect.v UNION SELECT n, t FROM dialect.w",
        "SELECT n FROM dialect.v UNION ALL SELECT k FROM dialect.w UNION ALL SELECT 1",
    ),
    "intersect": (
        "SELECT n FROM dialect.v INTERSECT SELECT k FROM dialect.w",
        "SELECT n FROM dialect.v INTERSECT ALL SELECT k FROM dialect.w",
    ),
    "except": (
        "SELECT n FROM dialect.v EXCEPT SELECT k FROM dialect.w",
        "SELECT n FROM dialect.v EXCEPT ALL SELECT k FROM dialect.w",
        "SELECT n FROM dialect.v EXCEPT SELECT k FROM dialect.w EXCEPT SELECT 7",
    ),
    "with": (
        "WITH a AS (SELECT id, n FROM dialect.v), c AS (SELECT n FROM a) SELECT n FROM c",
        "WITH v AS (SELECT 1 AS id) SELECT v.id, w.n FROM v JOIN dialect.w ON v.id = w.id",
    ),
    "from_subquery": ("SELECT q.m FROM (SELECT max(n) AS m FROM dialect.v GROUP BY o) AS q",),
    "scalar_subquery": (
        "SELECT id, (SELECT max(w.k) FROM dialect.w WHERE w.n = v.n) AS m FROM dialect.v",
        "SELECT id, (SELECT k FROM dialect.w WHERE w.n = v.n) AS m FROM dialect.v",
        "SELECT id, (SELECT count(*) FROM dialect.w WHERE w.n = v.n) AS m FROM dialect.v",
    ),
    "in_subquery": (
        "SELECT id FROM dialect.v WHERE n IN (SELECT n FROM dialect.w)",
        "SELECT id FROM dialect.v WHERE n NOT IN (SELECT n FROM dialect.w)",
        "SELECT id, n NOT IN (SELECT k FROM dialect.w WHERE k IS NOT NULL) AS x FROM dialect.v",
    ),
    "exists": (
        "SELECT id FROM dialect.v WHERE EXISTS (SELECT 1 FROM dialect.w WHERE w.n = v.n)",
        "SELECT id FROM dialect.v WHERE NOT EXISTS (SELECT 1 FROM dialect.w WHERE w.t = v.t)",
    ),
}
_ORDERS: Final = ("=", "<>", "<", "<=", ">", ">=")
EXPRESSIONS: Final[dict[str, tuple[str, ...]]] = {
    "number": (
        "12", "2147483648", "9223372036854775808", "1.50", "0.00", "1e5::double precision",
        "12345678901234567890.123456789012345678", "007", "i + 32767", "i * 2", "i + 40000",
    ),
    "string": ("'it''s'", "'back\\slash'", "'日本 😀'", "''"),
    "boolean": ("TRUE", "FALSE"),
    "null": ("NULL::integer", "coalesce(NULL, n)", "n + NULL"),
    "typed_literal": (
        "DATE '2024-02-29'", "TIMESTAMP '1969-12-31 23:59:59.5'", "dt = DATE '1970-01-01'",
        "tz > TIMESTAMP '2024-01-01 00:00' AT TIME ZONE 'UTC'",
        "'2024-01-01 00:00:00+02'::timestamptz",
    ),
    "interval": (
        "ts + INTERVAL '1 day'", "ts - INTERVAL '90 minutes'", "tz + INTERVAL '24 hours'",
        "dt + INTERVAL '36 hours'", "ts - INTERVAL '1' second", "dt - INTERVAL '2 days'",
    ),
    "compare": (
        *(f"n {sign} 1" for sign in _ORDERS), *(f"t {sign} u" for sign in _ORDERS),
        *(f"f {sign} 0.1" for sign in _ORDERS), *(f"ts {sign} tz" for sign in _ORDERS),
        "d = e", "d > f", "b = f", "b > d", "f = d", "f > 'NaN'::double precision", "dt < ts",
        "n <> i", "o > FALSE", "t < 'b'", "ts > '2024-01-01'", "f = b", "i < b", "dt <= tz",
    ),
    "logic": ("o AND n > 1", "o OR n > 1", "NOT o", "o AND NULL", "NOT o OR n = 1 AND b = 2"),
    "is_null": _of_all("{0} IS NULL") + _of_all("{0} IS NOT NULL"),
    "is_true": ("o IS TRUE", "o IS FALSE", "o IS NOT TRUE", "n > 1 IS NOT FALSE", "o IS NOT NULL"),
    "distinct_from": ("n IS DISTINCT FROM i", "f IS NOT DISTINCT FROM 'NaN'::double precision",
                      "t IS DISTINCT FROM NULL", "t IS NOT DISTINCT FROM u"),
    "between": ("n BETWEEN 1 AND 7", "t NOT BETWEEN 'A' AND 'b'", "d BETWEEN -2.5 AND 2.5",
                "f BETWEEN 0 AND 'NaN'::double precision", "n BETWEEN 7 AND 1",
                "ts BETWEEN dt AND tz"),
    "in_list": ("n IN (1, 2, NULL)", "n NOT IN (1, 2)", "t IN ('a', 'é')", "n NOT IN (1, NULL)",
                "d IN (2.5, 0.5)", "dt IN ('2024-02-29')"),
    "like": ("t LIKE 'a%'", "t LIKE '_'", "t NOT LIKE '%o%'", "t LIKE ''", "u LIKE '%'",
             "t LIKE '日_'", "t LIKE '%\n'", "t LIKE 'a_c'", "t LIKE 'é%'"),
    "plus": ("i + i", "n + n", "b + b", "n + b", "d + e", "e + e", "d + d", "d + n", "f + 1",
        "e + 1",
             "dt + 1", "dt + n", "f + e", "i + n", "b + 1", "ts + (ts - ts)"),
    "minus": (
        "dt - ts", "tz - ts", "tz - dt","i - 1", "n - n", "b - 2", "d - e", "f - 1.5", "dt - dt",
        "dt - 7", "ts - ts",
        "e - n",
              "dt - DATE '1970-01-01'",
              "ts - TIMESTAMP '2024-03-30 01:02:03.5' > INTERVAL '1 day'"),
    "times": (
        "INTERVAL '7 hours' * e", "(ts - TIMESTAMP '2024-01-01') * 1.5", "INTERVAL '1 hour' * i",
        "i * i", "n * 2", "b * 3", "e * e", "e * 1.10", "f * 2", "d * 2", "e * n", "n * b",
              "f * e", "d * e", "f * f"),
    "negate": ("-i", "-n", "-b", "-d", "-f", "-e", "- -n", "-n + 1", "-(-b)"),
    "divide": ("n::double precision / 7", "n::double precision / NULLIF(i, 0)",
               "1 / NULLIF(f, 0)::double precision", "e / 3::double precision",
               "f / 3::double precision",
               "b / 10.0::double precision", "n / NULLIF(b::double precision, 0)"),
    "modulo": ("n % 3", "n % -3", "b % NULLIF(n, 0)", "d % 7", "e % 0.3", "i % NULLIF(i, 0)",
        "b % NULLIF(-1, 0)",
               "f % 2", "d % NULLIF(e, 0)"),
    "join_text": ("t || u", "t || n", "t || d", "t || dt", "t || ts", "t || tz", "t || o", "n || t",
                  "t || ''", "t || NULL", "t || f", "t || e || '-' || b"),
    "case": ("CASE WHEN n > 1 THEN 'big' WHEN n > 0 THEN 'one' ELSE t END",
        "CASE n WHEN 1 THEN 2 END",
             "CASE WHEN o THEN e ELSE 1 END", "CASE WHEN o THEN n ELSE f END",
             "CASE t WHEN NULL THEN 1 ELSE 2 END",
             "CASE WHEN n <> 0 THEN 10 % NULLIF(n, 0) END", "CASE WHEN o THEN b ELSE e END"),
    "at_time_zone": (
        "dt AT TIME ZONE 'UTC'", "'2024-01-01' AT TIME ZONE 'UTC'",
        "tz AT TIME ZONE 'Europe/Berlin'", "ts AT TIME ZONE 'Europe/Berlin'",
                     "ts AT TIME ZONE 'America/New_York'", "tz AT TIME ZONE 'UTC'",
                     "date_trunc('day', tz AT TIME ZONE 'Europe/Berlin')",
                     "ts AT TIME ZONE 'Asia/Kolkata'"),
    "coalesce": ("coalesce(n, 0)", "coalesce(t, u, 'x')", "coalesce(d, n)", "coalesce(f, 0)",
        "coalesce(i, b)"),
    "nullif": ("nullif(n, 1)", "nullif(t, '')", "nullif(f, 0)", "nullif(d, e)", "nullif(n, b)",
        "nullif(e, 1)"),
    "greatest": ("greatest(n, 1)", "greatest(t, u)", "greatest(f, 0)", "greatest(d, e)",
        "greatest(n, b, i)", "greatest(dt, ts)"),
    "least": ("least(n, 1)", "least(t, u)", "least(f, 0)", "least(d, NULL)", "least(tz, ts)",
        "least(e, f)"),
    "abs": _of_all("abs({0})", "i n b d e f"),
    "mod": ("mod(n, 3)", "mod(b, NULLIF(n, 0))", "mod(n + 1, 4)", "mod(d, 2)"),
    "round": ("round(d, 2)", "round(e, 1)", "round(e, 0)", "round(n, 0)", "round(d, 9)",
        "round(f, 1)", "round(e, 5)", "round(b, 2)"),
    "floor": _of_all("floor({0})", "d e f n b"),
    "ceil": (*_of_all("ceil({0})", "d e f n"), "ceiling(e)"),
    "date_trunc": tuple(f"date_trunc('{unit}', {column})" for column in ("ts", "tz",
    "dt") for unit in
                        ("second", "minute", "hour", "day", "week", "month", "quarter", "year")),
    "extract": tuple(f"extract({unit} FROM {column})" for column in ("ts", "tz", "dt") for unit in
                     ("year", "quarter", "month", "week", "day", "hour", "minute", "second",
                      "epoch", "isoyear", "doy", "dow", "isodow")),
    "cut_time": (
        "cut_time()", "CUT_TIME ( )", "tz > cut_time() - INTERVAL '7 days'", "ts <= cut_time()",
        "dt < cut_time()", "tz - cut_time()", "cut_time() - INTERVAL '90 minutes'",
        "cut_time() AT TIME ZONE 'America/New_York'", "date_trunc('week', cut_time())",
        "extract(epoch FROM cut_time())", "extract(second FROM cut_time())", "cut_time()::date",
        "cut_time()::timestamp", "cut_time()::text", "t || cut_time()", "greatest(tz, cut_time())",
        "coalesce(tz, cut_time())", "CASE WHEN o THEN cut_time() END", "dt - cut_time()::date",
        "tz BETWEEN cut_time() - INTERVAL '1 day' AND cut_time()", "tz IN (cut_time())",
        "SELECT cut_time() AS x, count(*) AS c FROM dialect.v GROUP BY 1",
        "SELECT cut_time() AS x, count(*) AS c FROM dialect.v GROUP BY cut_time()",
        "SELECT o, max(cut_time()) AS x FROM dialect.v GROUP BY o HAVING max(tz) > cut_time()",
        "SELECT id FROM dialect.v WHERE tz > cut_time() UNION ALL SELECT id FROM dialect.w",
    ),
    "to_smallint": (*_of_all("{0}::smallint", "i n b d e f"), "'12'::smallint", "o::smallint"),
    "to_integer": (*_of_all("{0}::integer", "i n b d e f o"), "' 12 '::integer",
        "CAST('-7' AS integer)"),
    "to_bigint": (*_of_all("{0}::bigint", "i n b d e f"), "'9223372036854775807'::bigint",
        "o::bigint"),
    "to_numeric": (*_of_all("{0}::numeric(38,10)", "i n b d e f"), *_of_all("{0}::numeric(5,1)",
        "i n b d e"), "e::numeric(10,0)",
                   "'1.005'::numeric(10,2)", "o::numeric(5,0)", "d::numeric(38,0)",
                   "b::numeric(20)",
                   "SELECT id, digits::numeric(38,2) AS x FROM dialect.x",
                   "SELECT id, digits::numeric(30,10) AS x FROM dialect.x"),
    "to_double": (*_of_all("{0}::double precision", "i n b d e f o"), "'1.5'::double precision",
        "'NaN'::double precision",
                  "SELECT id, digits::double precision AS x FROM dialect.x",
                  "(e * 3)::double precision"),
    "to_text": (*_of_all("{0}::text"), "(e * 2)::text", "extract(year FROM ts)::text",
        "(n + 1)::text", "date_trunc('day', tz)::text"),
    "to_date": ("ts::date", "tz::date", "dt::date", "'2024-02-29'::date",
        "SELECT id, moment::date AS x FROM dialect.x", "(ts + INTERVAL '1 hour')::date"),
    "to_timestamp": ("dt::timestamp", "tz::timestamp", "ts::timestamp", "'2024-02-29'::timestamp",
        "SELECT id, moment::timestamp AS x FROM dialect.x"),
    "to_timestamptz": ("dt::timestamptz", "ts::timestamptz", "tz::timestamptz",
        "SELECT id, moment::timestamptz AS x FROM dialect.x"),
    "to_boolean": ("n::boolean", "o::boolean", "'yes'::boolean", "'f'::boolean", "b::boolean",
        "t::boolean"),
}  # fmt: skip
AGGREGATES: Final[dict[str, tuple[str, ...]]] = {
    "count": (*_groups("count(*)", *_of_all("count({0})")), "SELECT count(*) AS x FROM dialect.v"),
    "count_distinct": _groups(*_of_all("count(DISTINCT {0})")),
    "sum": (
        *_groups(*_of_all("sum({0})", "i n b d e"), "sum(DISTINCT n)", "sum(e * e)", "sum(f)"),
        "SELECT sum(b) AS x FROM dialect.v WHERE b > 0",
        "SELECT sum(b) AS x FROM dialect.v WHERE id = 0",
        "SELECT sum(n) + 1 AS x FROM dialect.v WHERE n > 0",
    ),
    "min": (
        *_groups(*_of_all("min({0})", "i n b d e f t dt ts tz")),
        "SELECT min(t) AS x FROM dialect.v",
    ),
    "max": (
        *_groups(*_of_all("max({0})", "i n b d e f t dt ts tz")),
        "SELECT max(t) AS x FROM dialect.v",
    ),
    "avg": _groups("avg(n::double precision)", "avg(e::double precision)"),
    "bool_and": _groups("bool_and(o)", "bool_and(n > 0)"),
    "bool_or": _groups("bool_or(o)", "bool_or(n > 6)"),
    "filter": _groups("sum(n) FILTER (WHERE e > 0)", "count(*) FILTER (WHERE t LIKE 'a%')"),
    "over": _windows(
        "sum(n) OVER (PARTITION BY o)",
        "sum(n) OVER (PARTITION BY o ORDER BY n)",
        "count(*) OVER (ORDER BY t)",
        "count(n) OVER ()",
        "min(t) OVER (PARTITION BY o ORDER BY id)",
        "max(ts) OVER (ORDER BY id DESC)",
        "sum(e) FILTER (WHERE o) OVER (ORDER BY id)",
    ),
    "row_number": _windows("row_number() OVER (PARTITION BY o ORDER BY n DESC, id)"),
    "rank": _windows("rank() OVER (ORDER BY n)", "rank() OVER (ORDER BY f DESC)"),
    "dense_rank": _windows("dense_rank() OVER (ORDER BY t)", "dense_rank() OVER (ORDER BY d)"),
    "lag": _windows(
        "lag(n) OVER (ORDER BY id)", "lag(t, 2, '-') OVER (PARTITION BY o ORDER BY id)"
    ),
    "lead": _windows("lead(n, 1, 0) OVER (ORDER BY id)", "lead(f, 0) OVER (ORDER BY id DESC)"),
    "first_value": _windows("first_value(t) OVER (PARTITION BY o ORDER BY n, id)"),
    "last_value": _windows("last_value(n) OVER (PARTITION BY o ORDER BY ts, id)"),
    "nulls": _windows(
        "row_number() OVER (ORDER BY n NULLS FIRST, id)",
        "row_number() OVER (ORDER BY n DESC NULLS LAST, id)",
        "row_number() OVER (ORDER BY n DESC, id)",
        "row_number() OVER (ORDER BY t, id)",
    ),
}
REFUSED: Final = frozenset(
    {
        *("t || f", "f % 2", "floor(n)", "floor(b)", "ceil(n)", "round(f, 1)", "f::text"),
        *("f::numeric(38,10)", "o::smallint", "o::bigint", "o::numeric(5,0)", "t::boolean"),
        *(text for text in EXPRESSIONS["date_trunc"] if "dt" in text),
        *(f"extract({unit} FROM dt)" for unit in ("hour", "minute", "second")),
        *("dt AT TIME ZONE 'UTC'", "'2024-01-01' AT TIME ZONE 'UTC'"),
        *("b::boolean", "o::double precision"),
    }
)
"""What a guard refuses in every row; Postgres either answers differently or refuses as well."""
STOPS: Final = frozenset(
    {"d + e", "d + d", "d + n", "e * e", "d * 2", "e * n", "d * e", "b % NULLIF(-1, 0)"}
)
"""What overflows in DuckDB for values that Postgres can still represent."""
INFINITE: Final = frozenset(
    {"f * 2", "f * e", "f * f", "1 / NULLIF(f, 0)::double precision", "f / 3::double precision"}
)
"""What is out of range in Postgres, and infinite or 0 in DuckDB."""
FAILS: Final = frozenset(
    {"SELECT id, (SELECT k FROM dialect.w WHERE w.n = v.n) AS m FROM dialect.v"}
)
"""Queries that fail in both."""
ORDERED: Final = (
    "SELECT o, min(t) AS low, max(u) AS high FROM dialect.v GROUP BY o",
    "SELECT id, t < u AS x FROM dialect.v",
    'SELECT o, min(lower(t COLLATE "C")) AS a, max(rtrim(t)) AS b FROM dialect.v GROUP BY o',
    "SELECT id, t BETWEEN 'A' AND 'a' AS x FROM dialect.v",
    "SELECT id, greatest(t, u) AS x, least(t, 'b') AS y FROM dialect.v",
    "SELECT id, row_number() OVER (ORDER BY t, id) AS x FROM dialect.v",
)
"""Queries whose answer depends on the collation."""
CASES: Final = {
    **QUERIES, **EXPRESSIONS, **AGGREGATES, **text_cases.CASES, **window_cases.CASES
}  # fmt: skip
