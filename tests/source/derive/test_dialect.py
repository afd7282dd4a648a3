"""Every entry of the allow-list means the same in Postgres and in DuckDB."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import duckdb
import psycopg
import pytest

from cdc.derive.definition.at_time import at_time
from cdc.derive.definition.definition import Definition
from cdc.derive.definition.folder import read_definition
from cdc.derive.sql.allowed import ENTRIES
from cdc.derive.sql.collation import text_ordered
from cdc.source.server.connection import Connection, connect
from tests.source.derive import text_cases
from tests.source.derive.cases import CASES, FAILS, INFINITE, ORDERED, REFUSED, STOPS
from tests.source.derive.edge_rows import CUT_TIME, ROWS, TEXTS, fill_duckdb, fill_postgres
from tests.source.derive.window_cases import BY_HAND

pytestmark = pytest.mark.integration

Rows = Counter[tuple[object, ...]]
FAILED: Rows = Counter([("error",)])
PAIRS = [(name, text) for name, texts in CASES.items() for text in texts]


@pytest.fixture(scope="module")
def postgres(source_url: str) -> Iterator[Connection]:
    with connect(source_url) as connection:
        fill_postgres(connection, "C")
        yield connection


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        fill_duckdb(connection)
        yield connection


def test_every_entry_has_a_case() -> None:
    assert sorted(CASES) == sorted(entry.name for entry in ENTRIES)


@pytest.mark.parametrize(
    "text", [text for _, text in PAIRS], ids=[f"{n}-{t[:60]}" for n, t in PAIRS]
)
def test_an_entry_means_the_same(
    text: str, postgres: Connection, duck: duckdb.DuckDBPyConnection
) -> None:
    """Rows of an expression are evaluated one by one, so that an overflow hides no other row."""
    whole = text.startswith(("SELECT", "WITH"))
    definition = read(text if whole else f"SELECT id, {text} AS x FROM dialect.v")
    parts = [""] if whole else [f" WHERE id = {row[0]}" for row in ROWS]
    written = BY_HAND.get(text, text) if whole else f"SELECT id, {text} AS x FROM dialect.v"

    theirs = answers(postgres, written, parts)
    ours = answers(duck, definition.duckdb, parts)

    assert answers(postgres, definition.postgres, parts) == theirs
    if text in REFUSED:
        assert all(our == FAILED for our in ours)
    else:
        assert differences(ours, theirs) == allowed_differences(text, ours, theirs)
        assert whole_fails(ours) == (text in FAILS)


@pytest.mark.parametrize("text", ORDERED)
def test_text_is_ordered_by_its_bytes(
    text: str, source_url: str, duck: duckdb.DuckDBPyConnection
) -> None:
    """The source's own collation puts a before B."""
    definition = read(text)
    with connect(source_url) as connection:
        fill_postgres(connection, "en-x-icu")
        theirs = answers(connection, text, [""])
        ordered = answers(connection, text_ordered(definition.postgres, TEXTS), [""])

    assert answers(duck, definition.duckdb, [""]) == ordered
    assert ordered != theirs


def test_functions_of_text_have_no_part_in_the_collation(
    source_url: str, duck: duckdb.DuckDBPyConnection
) -> None:
    """Plain lower() would change other letters than those of ASCII in this collation."""
    texts = [text for cases in text_cases.CASES.values() for text in cases if "SELECT" in text]
    with connect(source_url) as connection:
        fill_postgres(connection, "tr-x-icu")
        for text in texts:
            definition = read(text)
            theirs = answers(connection, definition.postgres, [""])
            assert answers(duck, definition.duckdb, [""]) == theirs, text
        plain = "SELECT id, lower(t) AS x FROM dialect.s"
        assert answers(connection, plain, [""]) != answers(duck, plain, [""])


def answers(
    connection: Connection | duckdb.DuckDBPyConnection, query: str, parts: list[str]
) -> list[Rows]:
    return [rows(_asking(connection), f"SELECT * FROM ({query}) q{part}") for part in parts]


def differences(ours: list[Rows], theirs: list[Rows]) -> list[tuple[Rows, Rows]]:
    return [(our, their) for our, their in zip(ours, theirs, strict=True) if our != their]


def allowed_differences(text: str, ours: list[Rows], theirs: list[Rows]) -> list[tuple[Rows, Rows]]:
    """Return the differences that the lists of cases name; a name without one is an error."""
    found = differences(ours, theirs)
    if text in STOPS:
        found = [(our, their) for our, their in found if our == FAILED]
    elif text in INFINITE:
        found = [(our, their) for our, their in found if their == FAILED and out_of_range(our)]
    else:
        return []
    assert found, "it is listed as different, and is equal"
    return found


def out_of_range(row: Rows) -> bool:
    ((_, value),) = row
    return value in {("float", "inf"), ("float", "-inf"), ("float", "0.0"), ("float", "-0.0")}


def whole_fails(answers: list[Rows]) -> bool:
    return all(answer == FAILED for answer in answers)


def test_the_comparison_sees_a_difference(
    postgres: Connection, duck: duckdb.DuckDBPyConnection
) -> None:
    query = "SELECT -7 / 2 AS x"

    assert rows(_asking(postgres), query) != rows(_asking(duck), query)


def read(text: str, name: str = "a.x.sql") -> Definition:
    definition, problems = read_definition(name, name, text)
    assert problems == []
    assert definition is not None
    return at_time(definition, CUT_TIME)


def _asking(
    connection: Connection | duckdb.DuckDBPyConnection,
) -> Callable[[str], list[tuple[object, ...]]]:
    def ask(query: str) -> list[tuple[object, ...]]:
        if isinstance(connection, duckdb.DuckDBPyConnection):
            return connection.execute(query).fetchall()
        return connection.execute(query.encode()).fetchall()

    return ask


def rows(ask: Callable[[str], list[tuple[object, ...]]], query: str) -> Rows:
    """Return the rows, or that there was an error."""
    try:
        return Counter(tuple(exact(value) for value in row) for row in ask(query))
    except (psycopg.Error, duckdb.Error):
        return FAILED


def exact(value: object) -> object:
    """Return what distinguishes values that Python or a driver would call equal.

    Whole numbers and decimals are compared as numbers, as their types differ by design.
    """
    if isinstance(value, bool | str) or value is None:
        return (type(value).__name__, value)
    if isinstance(value, int | Decimal):
        return ("number", Decimal(value).normalize() if not value else str(_plain(value)))
    if isinstance(value, float):
        return ("float", repr(value))
    if isinstance(value, datetime):
        return ("moment", value.astimezone(UTC) if value.tzinfo else value, bool(value.tzinfo))
    assert isinstance(value, date | timedelta), value
    return (type(value).__name__, value)


def _plain(value: int | Decimal) -> str:
    text = f"{Decimal(value):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
