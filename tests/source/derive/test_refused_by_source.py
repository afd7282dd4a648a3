"""The source is asked whether it accepts a definition's query."""

from collections.abc import Iterator

import pytest

from cdc.client.derived.at_source import refused_by_source
from cdc.derive.definition.definition import Definition
from cdc.derive.definition.folder import read_definition
from cdc.source.server.connection import Connection, connect

pytestmark = pytest.mark.integration


@pytest.fixture
def connection(source_url: str) -> Iterator[Connection]:
    with connect(source_url) as opened:
        opened.execute("CREATE TABLE public.asked (id int, name text)")
        yield opened
        opened.execute("DROP TABLE public.asked")


def read(name: str, text: str) -> Definition:
    definition, problems = read_definition(f"{name}.sql", f"{name}.sql", text)
    assert definition is not None, problems
    return definition


def test_what_postgres_refuses_is_named_and_nothing_else(connection: Connection) -> None:
    good = read("marts.good", "SELECT name, count(*) AS n FROM public.asked GROUP BY name")
    over = read("marts.over", "SELECT sum(n) AS n FROM marts.good")
    joined = read("marts.joined", "SELECT id || id AS x FROM public.asked")
    again = read("marts.again", "SELECT id AS x FROM public.asked WHERE name = 1")

    problems = list(refused_by_source(connection, [good, joined, over, again]))

    assert [(problem.file, problem.message) for problem in problems] == [
        (
            "marts.joined.sql",
            "the source refuses the query: operator does not exist: integer || integer",
        ),
        (
            "marts.again.sql",
            "the source refuses the query: operator does not exist: text = integer",
        ),
    ]
    assert list(refused_by_source(connection, [good, over])) == []
