"""Test what a predicate may contain, why it is refused, and how it is spelled."""

import re

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from cdc.errors import CdcError, ErrorKind
from cdc.events.structure.declared import DeclaredType, SourceColumn, source_column
from cdc.source.predicate.predicate import Predicate, parse, refuse_unlike
from cdc.tables import TableId

TABLE = TableId("shop", "orders")


def column(name: str, declared: str, modifier: int = -1, kind: str = "b") -> SourceColumn:
    found = DeclaredType(name=declared, kind=kind, modifier=modifier)
    return source_column(name, found, not_null=False, generated=False)


COLUMNS = [
    *(column(name, name) for name in ("int2", "int4", "int8", "oid", "float4", "float8")),
    *(column(name, name) for name in ("bool", "date", "timestamptz", "uuid", "text", "bpchar")),
    column("customer_id", "int8"),
    column("Note", "varchar", 24),
    column("order", "int4"),
    column("at", "timestamp"),
    column("total", "numeric", (10 << 16 | 2) + 4),
    column("factor", "numeric"),
    column("mood", "mood", kind="e"),
    column("pair", "pair", kind="c"),
    column("doc", "jsonb"),
    column("flags", "varbit"),
    column("secret${x}", "int4"),
    column("due", "date").as_text(),
    column("hashed", "text").masked_by("hash 0a1b"),
    column("dropped", "text").masked_by("drop"),
]


def read(text: str) -> Predicate:
    return parse(text, TABLE, COLUMNS, enums={"mood"})


def refusal(text: str) -> CdcError:
    with pytest.raises(CdcError) as caught:
        read(text)
    assert caught.value.kind is ErrorKind.CONFIG
    assert caught.value.remedy
    return caught.value


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("INT4=5", "int4 = 5"),
        ("(( int4 )) = (5)", "int4 = 5"),
        ("5 > int4", "int4 < 5"),
        ("int4 != +5", "int4 <> 5"),
        ("shop.orders.int4 = '5'::int", "int4 = 5"),
        ("mod(int4, 10) = 3", "int4 % 10 = 3"),
        ("int4 NOT IN (1, -2)", "NOT (int4 IN (1, -2))"),
        ("\"Note\" NOT LIKE 'a\\b\\%%'", "\"Note\" NOT LIKE 'ab\\%%'"),
        ('"order" = 1', '"order" = 1'),
        ("bool and not bool or bool", "(bool AND NOT (bool)) OR bool"),
        ("bool AND (bool OR bool)", "bool AND (bool OR bool)"),
        ("at > '2024-02-29T12:00'", "at > timestamp '2024-02-29 12:00:00'"),
        ("at > date '2024-02-29'", "at > timestamp '2024-02-29 00:00:00'"),
        (
            "timestamptz < timestamptz '2024-02-29 01:00:00+02'",
            "timestamptz < timestamptz '2024-02-28 23:00:00+00'",
        ),
        ("float8 = 1e3", "float8 = 1000.0"),
        ("float4 = 0.5", "float4 = '0.5'"),
        ("float8 IN ('nan', '+inf', '-0')", "float8 IN ('NaN', 'Infinity', 0.0)"),
        ("total BETWEEN -1 AND 2.5", "total BETWEEN -1.00 AND 2.50"),
        ("bpchar = 'ab  '", "bpchar = 'ab'"),
        ("uuid = 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'",) * 2,
        ("mood = 'it''s'", "mood = 'it''s'"),
        ("due ISNULL", "due IS NULL"),
        ("doc NOTNULL", "doc IS NOT NULL"),
    ],
)
def test_a_predicate_is_printed_in_one_spelling(typed: str, text: str) -> None:
    found = read(typed)

    assert found.text.lower() == text.lower()
    assert read(found.text) == found


def test_each_engine_gets_its_own_text() -> None:
    found = read("int4 % 10 = 3 AND \"Note\" = 'it''s ${x}\\' AND float4 > 1 AND bpchar <> 'a '")

    assert found.source == (
        "(\"int4\" % CAST('10' AS pg_catalog.int8)) = CAST('3' AS pg_catalog.int4)"
        " AND \"Note\" = CAST(E'it''s ${x}\\\\' AS pg_catalog.text)"
        " AND \"float4\" > CAST('1.0' AS pg_catalog.float4)"
        " AND \"bpchar\" <> CAST('a' AS pg_catalog.bpchar)"
    )
    assert found.lake == (
        "(`int4` % CAST('10' AS BIGINT)) = CAST('3' AS INT)"
        " AND `Note` = 'it\\u0027s \\u0024{x}\\u005C'"
        " AND (CAST(`float4` AS DOUBLE) + 0.0D) > CAST('1.0' AS DOUBLE)"
        " AND rtrim(`bpchar`) <> 'a'"
    )
    assert found.columns == ("int4", "Note", "float4", "bpchar")
    assert found.types == {"int4": "int", "Note": "string", "float4": "float", "bpchar": "string"}
    assert found.collated == {"Note", "bpchar"}


def test_an_integer_beyond_the_column_is_compared_as_a_larger_one() -> None:
    found = read("int2 < 99999999999")

    assert found.source == "\"int2\" < CAST('99999999999' AS pg_catalog.int8)"
    assert found.lake == "`int2` < CAST('99999999999' AS BIGINT)"


def test_a_composite_is_null_only_as_a_whole() -> None:
    assert read("pair IS NULL").source == '"pair" IS NOT DISTINCT FROM NULL'
    assert read("pair IS NOT NULL").source == '"pair" IS DISTINCT FROM NULL'


@pytest.mark.parametrize(
    ("typed", "message", "place", "remedy"),
    [
        (
            "custmer_id = 1",
            "names an unknown column of shop.orders: custmer_id",
            "1:1",
            "customer_id?",
        ),
        (
            "int4 = 1\n OR note = 'x'",
            "names an unknown column of shop.orders: note",
            "2:5",
            '"Note"?',
        ),
        ("int4 = 'abc'", "int4 (int4) with 'abc', which is not an integer", "1:8", "an integer"),
        ("date = '2023-02-29'", "not a date", "1:8", "write a date"),
        ("timestamptz > '2024-01-01 00:00'", "not a timestamp with an offset", "1:15", "offset"),
        ("order = 1", "has order, which is a reserved word", "1:1", '"order"'),
        ("doc = '{}'", "compare values of type jsonb differently", "1:1", "IS NULL"),
        ("text < 'b'", "column text (text) by order: the order of", "1:1", "=, <> or IN"),
        ("mood < 'ok'", "does not know the order of the enum's labels", "1:1", "=, <> or IN"),
        ("flags IS NULL", "flags, which is not in the lake: the connector", "1:1", ""),
        ("lower(text) = 'x'", "calls a function: lower", "1:1", "compare columns with constants"),
        ("int4 = (SELECT 1)", "has a subquery", "1:16", ""),
    ],
)
def test_a_refusal_has_message_place_and_remedy(
    typed: str, message: str, place: str, remedy: str
) -> None:
    error = refusal(typed)

    assert message in error.message
    assert error.detail == f"at {place}"
    assert remedy in error.remedy


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("-- int4 = 1", "is empty"),
        ("int4 = 1 -- OR bool", "has a comment"),
        ("int4 /* x */ = 1", "has a comment"),
        ("int4 = 1; DROP TABLE shop.orders", "has a semicolon"),
        ("int4 = 1;", "has a semicolon"),
        ("int4 = 1) OR (1 = 1", "cannot be parsed as SQL"),
        ("int4 = 1 UNION SELECT 1", "cannot be parsed as SQL"),
        ("int4 = 1 LIMIT 1", "cannot be parsed as SQL"),
        ("text = 'a", "a quote or a comment is not closed"),
        ("SELECT 1", "cannot be parsed as SQL"),
        ("true", "not allowed: BOOLEAN"),
        ("1 = 1", "compares constants, but no column"),
        ("int4 = 1 OR true", "not allowed: BOOLEAN"),
        ("int4 = NULL", "compares with NULL"),
        ("int4 IN (1, NULL)", "compares with NULL"),
        ("int4 IN ()", "has an empty list"),
        ("int4 IN (SELECT 1)", "not allowed: IN"),
        ("int4 = int8", "compares two columns"),
        ("int4", "uses column int4 (int4) as a condition"),
        ("bool IS TRUE", "uses IS with something other"),
        ("int4 + 1 = 2", "has an operator"),
        ("-int4 = 2", "not allowed: NEG"),
        ("int4 % 0 = 1", "uses % on something other"),
        ("int4 % 2 % 2 = 1", "has an operator"),
        ("float8 % 2 = 1", "uses % on something other"),
        ("oid % 2 = 1", "uses % on something other"),
        ("mod(10, int4) = 1", "has an operator"),
        ("int4 = 1.0", "not an integer"),
        ("int4 = 1e1", "not an integer"),
        ("int4 = '\u0661'", "not an integer"),
        ("int8 = 9223372036854775808", "not an integer"),
        ("int4 = 40000::int2", "not an integer"),
        ("int4 = '5'::numeric", "not an integer"),
        ("int4 = true", "not an integer"),
        ("oid = -1", "not an integer from 0"),
        ("bool = 1", "not true or false"),
        ("text = 5", "not a string"),
        ("text = 'a'::varchar(1)", "casts something other"),
        ("bpchar = 'a'::text", "not a string"),
        ("bpchar LIKE 'a%'", "uses LIKE on column bpchar"),
        ("text LIKE 'a\\'", "ends with its escape character"),
        ("text LIKE 'a#%' ESCAPE '#'", "has an operator"),
        ('text LIKE "Note"', "a pattern that is not a plain string"),
        ("text ILIKE 'a'", "has an operator"),
        ("text ~ 'a'", "has an operator"),
        ("text = E'a'", "not allowed: BYTESTRING"),
        ("text = U&'a'", "not allowed: UNICODESTRING"),
        ("text = $$a$$", "not allowed: RAWSTRING"),
        ("text = 'a' 'b'", "calls a function"),
        ("text || 'a' = 'b'", "has an operator"),
        ("text COLLATE \"C\" = 'a'", "has an operator"),
        ("text = 'a\0'", "has a character that text"),
        ("total = 1.234", "not a number with at most"),
        ("total = 'NaN'", "not a number with at most"),
        ("total = 1e40", "not a number with at most"),
        ("factor = 1", "without a precision"),
        ("due = date '2024-01-01'", "the lake stores it as text"),
        ("float8 = 1e400", "not a floating-point number"),
        ("float8 = 1e-400", "not a floating-point number"),
        ("float4 = 1e39", "not a floating-point number"),
        ("float8 = '1'::real", "not a floating-point number"),
        ("date = 'today'", "not a date"),
        ("date = 'infinity'", "not a date"),
        ("date = '20240101'", "not a date"),
        ("date = current_date", "calls a function"),
        ("at = '2024-01-01 00:00:00+02'", "not a timestamp like"),
        ("at = '2024-01-01 24:00:00'", "not a timestamp like"),
        ("at = '2024-01-01 00:00:00.1234567'", "not a timestamp like"),
        ("at = date '2024-01-01 10:00'", "not a timestamp like"),
        ("at > clock_timestamp()", "calls a function: clock_timestamp"),
        ("at > own_function(1)", "calls a function: own_function"),
        ("timestamptz = '2024-01-01 00:00 Europe/Berlin'", "with an offset"),
        ("timestamptz = '0001-01-01 00:00+05'", "with an offset"),
        ("uuid = 'a0eebc999c0b4ef8bb6d6bb9bd380a11'", "not a UUID"),
        ("pair = '(1,2)'", "compare values of type pair differently"),
        ("current_user = 'x'", "calls a function"),
        ("user = 'x'", "which is a reserved word"),
        ("ctid = '(0,1)'", "names an unknown column"),
        ("other.int4 = 1", "names a column of another table, other"),
        ("other.orders.int4 = 1", "names a column of another table, other.orders"),
        ("int4 = $1", "has a parameter"),
        ("int4 = :x", "has a parameter"),
        ("int4 = ?", "has a parameter"),
        ("int4 = %s", "has a parameter"),
        ("orders.* = 1", "not allowed: COLUMN"),
        ("int4 BETWEEN SYMMETRIC 2 AND 1", "not allowed: BETWEEN"),
        ("CASE WHEN bool THEN true END", "has a CASE"),
        ("EXISTS (SELECT 1)", "has a subquery"),
        ('"secret${x}" = 1', "whose name Spark cannot quote"),
        ("int4 IS DISTINCT FROM 1", "has an operator"),
        ("(int4, int8) = (1, 2)", "not allowed: TUPLE"),
        ("(" * 5000 + "bool" + ")" * 5000, "is nested too deeply"),
        ("bool" + " " * 100_000, "is longer than 100000 characters"),
    ],
)
def test_what_is_refused(typed: str, message: str) -> None:
    assert message in refusal(typed).message


def test_the_lake_must_have_the_columns_with_the_same_type_or_wider_integers() -> None:
    found = read("int4 = 1 AND total = 2")

    refuse_unlike(found, {"int4": "bigint", "total": "decimal(10,2)", "more": "string"})
    for types, message in (
        ({"int4": "int"}, "column total, but the lake's table of shop.orders does not have it"),
        ({"int4": "int", "total": "string"}, "has it as string, not as decimal"),
        ({"int4": "string", "total": "decimal(10,2)"}, "has it as string, not as int"),
    ):
        with pytest.raises(CdcError, match=message) as caught:
            refuse_unlike(found, types)
        assert caught.value.kind is ErrorKind.CONFIG


def test_a_long_list_is_not_refused_as_nested() -> None:
    found = read(" OR ".join(f"int4 = {number}" for number in range(3000)))

    assert found.text.count("OR") == 2999


NOISE = st.text("int48text='%\\\"()-*/;,.$:{}`\nE ANDORNOTLIKEINbool:: 0123456789é", max_size=40)


@given(NOISE | NOISE.map(lambda text: f"text = '{text}'"))
def test_typed_text_reaches_postgres_only_inside_quotes(text: str) -> None:
    """Any text is either refused with CONFIG, or becomes one condition over the table's columns."""
    try:
        found = read(text)
    except CdcError:
        refusal(text)
        return
    bare = re.sub(r"E?'(''|[^'])*'", "'", found.source)
    bare = re.sub(r'"(""|[^"])*"', '"', bare)
    assert re.fullmatch(r"[A-Za-z0-9_.\"'()<>=%, ]*", bare)
    tree = sqlglot.parse_one(f"SELECT 1 WHERE {found.lake}", read="spark")
    names = {each.name for each in tree.find_all(exp.Column)}
    assert names == set(found.columns)
