"""Windows of event time are the same in every session, and in a query over a derived table."""

import duckdb
import psycopg
import pytest

from cdc.derive.definition.inlined import inlined
from cdc.derive.sql.collation import text_ordered
from cdc.source.server.connection import Connection
from tests.source.derive.edge_rows import TEXTS
from tests.source.derive.test_dialect import FAILED, answers, read
from tests.source.derive.window_cases import BY_HAND, CASES

pytestmark = pytest.mark.integration

BERLIN = "SET TimeZone = 'Europe/Berlin'"
BELOW = "SELECT m.id, m.k, m.tz + INTERVAL '1 day' AS later FROM dialect.m WHERE m.id > 1"
ABOVE = """\
SELECT a.id, a.window_start AS s, h.window_end AS e
FROM sessions(marts.below, later, INTERVAL '30 minutes', k) AS a
JOIN hop(marts.below, later, INTERVAL '1 hour', INTERVAL '3 hours') AS h ON h.id = a.id"""


@pytest.mark.parametrize("text", [*BY_HAND, CASES["range"][0]])
def test_the_zone_of_a_session_and_the_order_of_text_play_no_part(
    text: str, postgres: Connection, duck: duckdb.DuckDBPyConnection
) -> None:
    definition = read(text)
    ordered = text_ordered(definition.postgres, TEXTS)
    postgres.execute("SET TimeZone = 'UTC'")
    expected = answers(duck, definition.duckdb, [""])

    duck.execute(BERLIN)
    postgres.execute(BERLIN)

    assert expected != [FAILED]
    assert answers(duck, definition.duckdb, [""]) == expected
    assert answers(postgres, definition.postgres, [""]) == expected
    assert answers(postgres, ordered, [""]) == expected


def test_a_window_over_a_derived_table_is_calculated_from_captured_ones(
    postgres: Connection, duck: duckdb.DuckDBPyConnection
) -> None:
    below, above = read(BELOW, "marts.below.sql"), read(ABOVE)
    duck.execute("CREATE SCHEMA marts")
    duck.execute(f"CREATE TABLE marts.below AS {below.duckdb}")

    postgres.execute("SET TimeZone = 'UTC'")

    whole = text_ordered(inlined(above, {below.table: below}), TEXTS)

    (rows,) = answers(duck, above.duckdb, [""])
    assert rows.total() == 3 * 12
    assert answers(postgres, whole, [""]) == [rows]


@pytest.mark.parametrize("name", ["window_start", "window_end"])
def test_a_table_that_has_a_column_of_that_name_is_refused(
    name: str, postgres: Connection, duck: duckdb.DuckDBPyConnection
) -> None:
    """Otherwise DuckDB would answer with the table's column."""
    definition = read("SELECT w.window_end AS x FROM tumble(dialect.taken, ts, INTERVAL '1 day') w")
    for connection in (postgres, duck):
        connection.execute("DROP TABLE IF EXISTS dialect.taken")
        connection.execute(f"CREATE TABLE dialect.taken (ts timestamp, {name} timestamp)")

    with pytest.raises(psycopg.errors.AmbiguousColumn, match=name):
        postgres.execute(definition.postgres.encode())
    with pytest.raises(duckdb.BinderException, match=f'Ambiguous reference.*"{name}"'):
        duck.execute(definition.duckdb)


@pytest.mark.parametrize("form", ["tumble", "sessions"])
def test_a_date_has_no_windows(form: str, duck: duckdb.DuckDBPyConnection) -> None:
    definition = read(f"SELECT w.window_end AS x FROM {form}(dialect.m, d, INTERVAL '1 day') AS w")

    with pytest.raises(duckdb.InvalidInputException, match="a window of event time of a value"):
        duck.execute(definition.duckdb)
