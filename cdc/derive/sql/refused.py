"""Say what is refused by name, and what to write instead."""

from typing import Final

CLOCK: Final = "use cut_time(), the time of the cut in the source, or a column of the input"
_RANDOM: Final = "use a key of the input: the result must follow from the rows alone"
_CASE: Final = (
    "letters outside ASCII depend on the collation: compare as written, or keep a second column "
    "in the source"
)
LETTERS: Final = (
    'write {}(a COLLATE "C"), which changes the letters of ASCII alone: the others depend on the '
    "collation of the source"
)
_ORDERED: Final = "keep one row per element, and collect them where they are read"
_LIMIT: Final = "rank with row_number() OVER (ORDER BY ...) in a subquery, and filter by the rank"
_PATTERN: Final = "use LIKE with a constant pattern"
_PARTS: Final = "the engines' regular expressions differ: use split_part, strpos and replace"
_FRAME: Final = (
    "leave the frame out: it reaches from the first row to the current one and its ties; or write "
    "ORDER BY ts RANGE BETWEEN INTERVAL '1 hour' PRECEDING AND CURRENT ROW"
)

FUNCTIONS: Final[dict[str, str]] = {
    "now": CLOCK,
    "clock_timestamp": CLOCK,
    "statement_timestamp": CLOCK,
    "transaction_timestamp": CLOCK,
    "age": "subtract the timestamps",
    "random": _RANDOM,
    "gen_random_uuid": _RANDOM,
    "uuid_generate_v4": _RANDOM,
    "uuid": _RANDOM,
    "nextval": _RANDOM,
    "concat": "use ||, which is NULL if a part is; coalesce(a, '') || b skips NULL",
    "concat_ws": "use || and coalesce",
    "initcap": _CASE,
    "string_agg": _ORDERED,
    "array_agg": _ORDERED,
    "json_agg": _ORDERED,
    "jsonb_agg": _ORDERED,
    "reverse": "engines do not agree on a letter of several characters",
    "regexp_replace": _PARTS,
    "regexp_match": _PARTS,
    "regexp_substr": _PARTS,
    "percentile_cont": "it is computed differently in each engine",
    "percentile_disc": "it is computed differently in each engine",
    "stddev": "keep sum(a), sum(a * a) and count(a), which are exact",
    "variance": "keep sum(a), sum(a * a) and count(a), which are exact",
    "every": "use bool_and",
    "date_part": "use extract(... FROM ts)",
    "to_char": "use extract, or ::text",
    "to_date": "use ::date",
    "to_timestamp": "use ::timestamptz",
    "to_number": "use ::numeric(p, s)",
    "date_bin": "use tumble in FROM, or date_trunc",
    "ntile": "use row_number() and count(*) OVER",
    "percent_rank": "use rank() and count(*) OVER",
    "cume_dist": "use rank() and count(*) OVER",
    "nth_value": "rank the rows in a subquery, and filter by the rank",
    "generate_series": "keep the series as a table of the source",
    "unnest": "keep the elements as rows of the source",
    "row": "compare the columns one by one",
    "any": "use IN",
    "some": "use IN",
    "grouping": "use UNION ALL of several GROUP BY",
    "cube": "use UNION ALL of several GROUP BY",
    "rollup": "use UNION ALL of several GROUP BY",
    "match_recognize": "write kind: pattern into the front matter",
}
"""The remedy for functions, by name."""

WORDS: Final[dict[str, str]] = {
    "current_date": CLOCK,
    "current_time": CLOCK,
    "current_timestamp": CLOCK,
    "localtime": CLOCK,
    "localtimestamp": CLOCK,
    "current_user": "use a column of the input",
    "session_user": "use a column of the input",
    "limit": _LIMIT,
    "offset": _LIMIT,
    "fetch": _LIMIT,
    "lateral": "use a join, or a subquery with GROUP BY",
    "natural": "name the columns: JOIN ... USING (column)",
    "ilike": _PATTERN,
    "similar": _PATTERN,
    "tablesample": _RANDOM,
    "array": "keep the elements as rows of the source",
    "collate": 'leave it out, but in lower and upper: text is compared as with COLLATE "C"',
    "window": "write the window after each OVER",
    "into": "a definition is one SELECT, and its file's name names the table",
    "symmetric": "write the smaller bound first",
}
"""The remedy for words that are reserved in Postgres."""

RECURSIVE: Final = "recursion is not supported: use joins to the depth that you need"
STAR: Final = "name the columns: a new column of the source would change this table silently"
ORDER: Final = "leave it out: a table has no order"
DIVIDE: Final = (
    "a / b means -3 in Postgres and -3.5 elsewhere: write a::double precision / NULLIF(b, 0)"
)
ZERO: Final = "write NULLIF(b, 0) or a constant that is not 0: division by 0 differs"
AVERAGE: Final = "write avg(a::double precision), or keep sum(a) and count(a), which are exact"
FRAME: Final = _FRAME

SHOWN: Final[dict[str, str]] = {
    "SELECT *": STAR,
    "a / b": DIVIDE,
    "avg(a)": AVERAGE,
    "lower(a)": LETTERS.format("lower"),
    "upper(a)": LETTERS.format("upper"),
    "WITH RECURSIVE": RECURSIVE,
    "ORDER BY of the query": ORDER,
    "ROWS, GROUPS and other forms of RANGE in OVER": _FRAME,
    "~, SIMILAR TO": _PATTERN,
    "FOR SYSTEM_TIME BETWEEN": "read the history itself, which is a table like any other",
    "more than 8 inputs": "derive a part of it as a table of its own",
}
"""What is refused besides functions and words, with its remedy, for the reference page."""
