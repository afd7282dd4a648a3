"""What is printed means what Postgres reads in the text as it was written."""

from collections.abc import Iterator

import duckdb
import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from cdc.derive.definition.folder import read_definition
from cdc.source.server.connection import Connection, connect

pytestmark = pytest.mark.integration

NUMBERS = st.sampled_from(["1", "2", "3", "0", "NULL::integer"])
TRUTHS = st.sampled_from(["TRUE", "FALSE", "NULL::boolean"])


def numbers(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(parts, st.sampled_from(["+", "-", "*"]), parts).map(" ".join),
        parts.map("- {}".format),
        parts.map("{} % 3".format),
        parts.map("{}::bigint".format),
        parts.map("({})".format),
    )


def truths(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    value = st.recursive(NUMBERS, numbers, max_leaves=3)
    texts = value.map("({})::text".format)
    return st.one_of(
        st.tuples(value, st.sampled_from(["<", "=", "<>", ">="]), value).map(" ".join),
        st.tuples(parts, st.sampled_from(["AND", "OR", "="]), parts).map(" ".join),
        parts.map("NOT {}".format),
        parts.map("({})".format),
        st.tuples(
            value, st.sampled_from(["IS NULL", "IS NOT NULL", "IN (1, 2)", "NOT IN (1, 4)"])
        ).map(" ".join),
        st.tuples(parts, st.sampled_from(["IS TRUE", "IS NOT FALSE", "IS NULL"])).map(" ".join),
        st.tuples(value, st.just("BETWEEN"), value, st.just("AND"), value).map(" ".join),
        st.tuples(value, st.just("IS NOT DISTINCT FROM"), value).map(" ".join),
        st.tuples(texts, st.just("||"), texts, st.just("LIKE '1%'")).map(" ".join),
        st.tuples(texts, st.just("||"), texts, st.just("= '12'")).map(" ".join),
    )


EXPRESSIONS = st.one_of(
    st.recursive(NUMBERS, numbers, max_leaves=6), st.recursive(TRUTHS, truths, max_leaves=5)
)


@pytest.fixture(scope="module")
def postgres(source_url: str) -> Iterator[Connection]:
    with connect(source_url) as connection:
        connection.execute("DROP SCHEMA IF EXISTS precedence CASCADE")
        connection.execute("CREATE SCHEMA precedence")
        connection.execute("CREATE TABLE precedence.one AS SELECT 1 AS id")
        yield connection


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA precedence")
        connection.execute("CREATE TABLE precedence.one AS SELECT 1 AS id")
        yield connection


@settings(
    max_examples=400,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
@given(expression=EXPRESSIONS)
def test_operators_bind_as_in_postgres(
    expression: str, postgres: Connection, duck: duckdb.DuckDBPyConnection
) -> None:
    """What Postgres rejects, as a chain of comparisons, may be rejected later."""
    text = f"SELECT {expression} AS x FROM precedence.one"
    try:
        written = postgres.execute(text.encode()).fetchone()
    except psycopg.Error:
        return
    definition, problems = read_definition("x.sql", "a.x.sql", text)

    assert problems == []
    assert definition is not None
    assert postgres.execute(definition.postgres.encode()).fetchone() == written
    assert duck.execute(definition.duckdb).fetchone() == written
