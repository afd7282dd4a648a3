"""What is not on the allow-list is refused, at its place and with a remedy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.derive.definition.folder import read_definition
from cdc.derive.sql import refused
from cdc.errors import ErrorKind
from tests.unit.derive.definition.reading import problem, problems

TEXTS = {
    "SELECT o.a / o.b AS x FROM s.t AS o": (1, 8, "/ without double precision", "a / b means -3"),
    "SELECT a::double precision / b AS x FROM s.t": (1, 8, "the divisor may be 0", "write NULLIF"),
    "SELECT a % b AS x FROM s.t": (1, 8, "the divisor may be 0", "write NULLIF"),
    "SELECT a,\n  now() AS n FROM s.t": (2, 3, "now() is refused", "use cut_time()"),
    "SELECT a,\n random() AS n FROM s.t": (2, 2, "random() is refused", "use a key"),
    "SELECT a, current_date AS d FROM s.t": (1, 11, "CURRENT_DATE is refused", "use cut_time"),
    "SELECT gen_random_uuid() AS u FROM s.t": (1, 8, "gen_random_uuid() is refused", "use a key"),
    "SELECT * FROM s.t": (1, 8, "SELECT * is refused", "name the columns"),
    "SELECT a, o.* FROM s.t AS o": (1, 13, "SELECT * is refused", "name the columns"),
    "SELECT sum(*) AS x FROM s.t": (1, 12, "* is refused here", "name the columns"),
    "SELECT a FROM s.t LIMIT 3": (1, 19, "LIMIT is refused", "rank with row_number()"),
    "SELECT a FROM s.t ORDER BY a": (1, 8, "ORDER is refused in SELECT", "leave it out"),
    "WITH RECURSIVE r AS (SELECT a FROM s.t) SELECT a FROM r": (1, 6, "WITH RECURSIVE",
    "recursion"),
    "SELECT coalesc(a, 1) AS x FROM s.t": (1, 8, "unknown function coalesc()", "did you mean coa"),
    "SELECT xyzzy(a) AS x FROM s.t": (1, 8, "unknown function xyzzy()", "docs/reference"),
    "SELECT avg(a) AS x FROM s.t": (1, 8, "avg is refused here", "write avg(a::double"),
    "SELECT lower(a) AS x FROM s.t": (1, 8, "lower() is refused without", "write lower(a COLLATE"),
    'SELECT upper(a COLLATE "de") AS x FROM s.t': (1, 14, "this collation is", "write upper(a C"),
    'SELECT lower(a COLLATE "c") AS x FROM s.t': (1, 14, "this collation is", "write lower(a COLL"),
    "SELECT lower(a COLLATE C) AS x FROM s.t": (1, 16, "COLLATE is refused", "leave it out, but"),
    'SELECT a COLLATE "C" AS x FROM s.t': (1, 8, "COLLATE is refused here", "leave it out, but"),
    'SELECT a FROM s.t ORDER BY a COLLATE "C"': (1, 8, "ORDER is refused in SELECT", "leave it"),
    "SELECT initcap(a) AS x FROM s.t": (1, 8, "initcap() is refused", "letters outside ASCII"),
    "SELECT reverse(a) AS x FROM s.t": (1, 8, "reverse() is refused", "engines do not agree"),
    "SELECT split_part(a, '', 1) AS x FROM s.t": (1, 8, "split_part needs const", "write split"),
    "SELECT split_part(a, b, 1) AS x FROM s.t": (1, 8, "split_part needs const", "write split"),
    "SELECT split_part(a, '/', 0) AS x FROM s.t": (1, 8, "split_part needs const", "write split"),
    "SELECT split_part(a, '/', -1) AS x FROM s.t": (1, 8, "split_part needs const", "write split"),
    "SELECT split_part(a, '/', b) AS x FROM s.t": (1, 8, "split_part needs const", "write split"),
    "SELECT left(a, b) AS x FROM s.t": (1, 8, "left needs a constant number", "write left(a, 2)"),
    "SELECT right(a, - -2) AS x FROM s.t": (1, 8, "right needs a constant", "write right(a, 2)"),
    "SELECT strpos(a) AS x FROM s.t": (1, 16, "it cannot be parsed", "correct it"),
    "SELECT position(a, b) AS x FROM s.t": (1, 8, "this form of position()", "docs/reference"),
    "SELECT ltrim(a, 'x', 'y') AS x FROM s.t": (1, 8, "this form of ltrim()", "docs/reference"),
    "SELECT rtrim(mod(b, 1), 'x', 'y') AS x FROM s.t": (1, 8, "this form of rtrim()", "docs/ref"),
    "SELECT lpad(a, 3, 'x', 'y') AS x FROM s.t": (1, 8, "this form of lpad()", "docs/reference"),
    "SELECT mod(a, 3, 4) AS x FROM s.t": (1, 8, "this form of mod()", "docs/reference"),
    "SELECT lpad(a, b) AS x FROM s.t": (1, 8, "lpad and rpad need constants", "write lpad(a"),
    "SELECT rpad(a, 3, '') AS x FROM s.t": (1, 8, "lpad and rpad need constants", "write lpad(a"),
    "SELECT translate(a, b, 'x') AS x FROM s.t": (1, 8, "translate needs constants", "write trans"),
    "SELECT btrim(a, b) AS x FROM s.t": (1, 8, "trim needs constant characters", "write trim("),
    "SELECT trim(BOTH '' FROM a) AS x FROM s.t": (1, 18, "trim needs constant char", "write trim("),
    "SELECT concat(a, b) AS x FROM s.t": (1, 8, "concat() is refused", "use ||"),
    "SELECT a FROM orders": (1, 15, "orders has no schema", "write it as schema.table"),
    "SELECT a FROM c.s.t": (1, 15, "CATALOG is refused", "docs/reference"),
    "SELECT 1 AS a": (1, 8, "the query reads no table", "add FROM"),
    "SELECT a + 1 FROM s.t": (1, 8, "an output column has no name", "write AS"),
    "SELECT o.a, u.A FROM s.t AS o CROSS JOIN s.u AS u": (1, 13, "two output columns", "give one"),
    "SELECT a, NULL AS b FROM s.t": (1, 19, "b is NULL of no type", "give it one"),
    "SELECT a AS _cdc_x FROM s.t": (1, 8, "_cdc_x is a name of wal2lake's own", "choose one"),
    "SELECT _cdc_offset AS x FROM s.t": (1, 8, "_cdc_offset is a column of wal2lake's", "use the"),
    "SELECT a FROM s.t JOIN s.u USING (_cdc_offset)": (1, 35, "_cdc_offset is a column", "use"),
    "WITH c(a) AS (SELECT b FROM s.t) SELECT a FROM c": (1, 6, "names of columns", "write AS"),
    "SELECT q.a FROM s.t AS q(a)": (1, 24, "names of columns", "write AS"),
    "SELECT max(a, b) AS x FROM s.t": (1, 8, "EXPRESSIONS is refused in", "docs/reference"),
    "SELECT lag(a, b) OVER (ORDER BY a) AS x FROM s.t": (1, 8, "lag needs a constant", "write lag"),
    "SELECT rowid AS x FROM s.t": (1, 8, "rowid is a place in storage", "use the table's key"),
    "SELECT user AS x FROM s.t": (1, 8, "user is a reserved word", "to name a column"),
    "SELECT a FROM s.t WHERE a IN (1e5)": (1, 31, "1e5 is numeric in Postgres", "write 1e5::"),
    "SELECT a FROM s.t WHERE a LIKE b": (1, 25, "LIKE needs a constant pattern", "write LIKE"),
    r"SELECT a FROM s.t WHERE a LIKE 'a\_'": (1, 25, "LIKE needs a constant pattern", "write LIKE"),
    "SELECT a FROM s.t WHERE a ~ 'x'": (1, 25, "a ~ 'x' is refused", "use LIKE"),
    "SELECT a FROM s.t WHERE a ILIKE 'x'": (1, 27, "ILIKE is refused", "use LIKE"),
    "SELECT a::real AS x FROM s.t": (1, 8, "the type real is refused", "use smallint"),
    "SELECT a::numeric AS x FROM s.t": (1, 8, "numeric without precision", "write numeric(p, s)"),
    "SELECT a::numeric(39,1) AS x FROM s.t": (1, 8, "numeric(39, 1) is refused", "the precision"),
    "SELECT a::varchar(3) AS x FROM s.t": (1, 8, "the type varchar(3) is refused", "use smallint"),
    "SELECT a::timestamp(3) AS x FROM s.t": (1, 8, "timestamp(3) has a size", "use smallint"),
    "SELECT a::integer[] AS x FROM s.t": (1, 8, "the type int[] is refused", "use smallint"),
    "SELECT a + INTERVAL '1 month' AS x FROM s.t": (1, 8, "an interval of this form",
        "write a whole"),
    "SELECT a AT TIME ZONE 'CET-1' AS x FROM s.t": (1, 8, "this time zone is refused", "write the"),
    "SELECT a AT TIME ZONE b AS x FROM s.t": (1, 8, "this time zone is refused", "write the name"),
    "SELECT substring(a, -1, 2) AS x FROM s.t": (1, 18, "substring needs constants", "write"),
    "SELECT round(a) AS x FROM s.t": (1, 8, "round needs a number of digits", "write round"),
    "SELECT date_trunc('decade', a) AS x FROM s.t": (1, 8, "date_trunc does not know", "use day"),
    "SELECT extract(century FROM a) AS x FROM s.t": (1, 29, "extract(century ...) is ref", "use"),
    "SELECT row_number() OVER (PARTITION BY a) AS x FROM s.t": (1, 8, "row_number() has no", "add"),
    "SELECT row_number() OVER (ORDER BY a + 1) AS x FROM s.t": (1, 8, "the order of the", "end it"),
    "SELECT rank() AS x FROM s.t": (1, 8, "rank() needs OVER", "write OVER"),
    "SELECT avg(a::double precision) OVER () AS x FROM s.t": (1, 8, "avg OVER is refused", "use a"),
    "SELECT sum(a) OVER (ORDER BY a ROWS 1 PRECEDING) AS x FROM s.t": (1, 8, "this frame", "leave"),
    "SELECT DISTINCT ON (a) a FROM s.t": (1, 21, "ON is refused in DISTINCT", "docs/reference"),
    "SELECT count(DISTINCT (a, b)) AS n FROM s.t": (1, 24, "(a, b) is refused", "compare the"),
    "SELECT a FROM s.t FOR UPDATE": (1, 8, "LOCKS is refused in SELECT", "docs/reference"),
    "SELECT a FROM s.t NATURAL JOIN s.u": (1, 19, "NATURAL is refused", "name the columns"),
    "SELECT t.a FROM s.t JOIN s.u": (1, 26, "this join is refused", "write JOIN"),
    "SELECT q.a FROM (SELECT a FROM s.t)": (1, 25, "a subquery in FROM has no name", "write"),
    "SELECT (SELECT b, c FROM s.u) AS x FROM s.t": (1, 16, "a subquery as a value has",
        "select one"),
    "SELECT a FROM s.t UNION SELECT a FROM s.u EXCEPT SELECT a FROM s.v": (1, 8, "UNION, INT",
    "write"),
    "SELECT count(t) AS n FROM s.t": (1, 14, "t is a table here", "write the table's name"),
    "SELECT a FROM s.t GROUP BY 2": (1, 8, "no output column at position 2", "positions are 1"),
    "SELECT e'a' AS x FROM s.t": (1, 8, "", "write the text between plain"),
    "SELECT a FROM s.t; SELECT b FROM s.t": (1, 20, "a second statement begins here", "a file"),
    "INSERT INTO s.t SELECT 1": (1, 1, "INSERT is no SELECT", "a file holds one SELECT"),
    "VALUES (1)": (1, 1, "VALUES is no SELECT", "a file holds one SELECT"),
    "": (1, 1, "the file has no SELECT", "a file holds one SELECT"),
    "-- nothing\n;": (1, 1, "the file has no SELECT", "a file holds one SELECT"),
    "SELECT a frm b c": (1, 14, "it cannot be parsed as SQL near b", "correct it"),
    "SELECT 'a FROM s.t": (1, 1, "a quote or a comment is not closed", "close every"),
    "SELECT a\0 FROM s.t": (1, 9, "it has a zero byte", "remove it"),
    "SELECT 123456789012345678901234567890123456789 AS x FROM s.t": (1, 8, "", "use double"),
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_it_is_refused_at_its_place(text: str) -> None:
    line, column, message, remedy = TEXTS[text]

    found = problem(text)

    assert (found.line, found.column) == (line, column), str(found)
    assert found.message.startswith(message)
    assert found.remedy.startswith(remedy)


@pytest.mark.parametrize("name", refused.FUNCTIONS)
def test_a_refused_function_has_its_remedy(name: str) -> None:
    found = problems(f"SELECT a, {name}(a) AS x FROM s.t")

    assert (found[0].column, found[0].remedy) == (11, refused.FUNCTIONS[name])


@pytest.mark.parametrize("name", refused.WORDS)
def test_a_refused_word_has_its_remedy(name: str) -> None:
    found = problems(f"SELECT a, b FROM s.t WHERE {name} = 1")

    assert (found[0].column, found[0].remedy) == (28, refused.WORDS[name])


def test_every_problem_is_reported() -> None:
    found = problems("SELECT a / b AS x,\n avg(c) AS y,\n d::real AS z FROM s.t")

    assert [each.line for each in found] == [1, 2, 3]


@pytest.mark.parametrize("name", ["orders.sql", "a.b.c.sql", ".x.sql", "wal2lake.x.sql"])
def test_the_name_of_a_file_names_a_table(name: str) -> None:
    (found,) = problems("SELECT a FROM s.t", name)

    assert str(found) == f"{name}:1:1: the file's name names no table"


def test_a_query_reads_few_tables() -> None:
    tables = ", ".join(f"s.t{i}" for i in range(9))

    assert (
        problem(f"SELECT t0.a FROM {tables}").message == "the query reads 9 tables, and may read 8"
    )


@pytest.mark.parametrize("text", [" + ".join(["a"] * 3_000), "(" * 3_000 + "a" + ")" * 3_000])
def test_a_query_that_is_too_deep_is_refused(text: str) -> None:
    assert problem(f"SELECT {text} AS x FROM s.t").remedy in {"split it by WITH", "simplify it"}


def test_a_query_is_not_too_long() -> None:
    text = f"SELECT a FROM s.t WHERE a IN ({', '.join(['1000'] * 20_000)})"

    assert problem(text).message == "it is longer than 100000 characters"


def test_a_problem_is_an_error_of_the_configuration() -> None:
    error = problem("SELECT * FROM s.t").error()

    assert error.kind is ErrorKind.CONFIG
    assert error.message == "marts.sales.sql:1:8: SELECT * is refused"
    assert error.remedy == refused.STAR


TEXT = """
    SELECT FROM s.t a b , ( ) * + - / :: integer AS WITH x GROUP BY 1 'q' WHERE AND NOT IN OVER
    ORDER UNION ALL JOIN ON = < CASE WHEN THEN END count max INTERVAL ; . "Q" NULL TRUE $1 % || [ ]
    { } @ # LATERAL VALUES EXISTS LIKE /* -- */ ROWS FILTER ~ extract date_trunc trim substring
"""


@given(st.lists(st.sampled_from(TEXT.split())))
def test_no_text_makes_it_fail(words: list[str]) -> None:
    text = " ".join(words)

    read, found = read_definition("x.sql", "a.x.sql", text)

    assert (read is None) == bool(found)
