"""``cut_time()`` is a constant at each cut, and is refused where it cannot be one."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import duckdb
import pytest

from cdc.derive.definition.at_time import at_time
from cdc.derive.definition.declared import declared
from cdc.derive.definition.folder import read_file
from cdc.derive.scope.of_definition import definition_scope
from cdc.derive.scope.scope import Whole
from cdc.tables import TableId
from tests.unit.derive.definition.reading import definition, problem, problems

RECENT = "SELECT o.id, o.at FROM shop.orders AS o WHERE o.at > cut_time() - INTERVAL '7 days'"
NOON = datetime(2024, 1, 31, 12, 0, 0, 123_000, tzinfo=UTC)
AS_OF = "SELECT o.id FROM shop.orders AS o JOIN shop.c FOR SYSTEM_TIME AS OF {} AS c ON c.id = o.id"
LATE = """/* ---
late: {column: at, allowed: 10 minutes}
--- */
SELECT w.window_start, count(*) AS n, max(cut_time()) AS t
FROM tumble(shop.orders, at, INTERVAL '1 hour') AS w GROUP BY w.window_start"""
PATTERN = """/* ---
kind: pattern
within: 10 minutes
--- */
SELECT * FROM shop.orders MATCH_RECOGNIZE (
  PARTITION BY who ORDER BY at MEASURES A.id AS a ONE ROW PER MATCH
  AFTER MATCH SKIP PAST LAST ROW PATTERN (A B) DEFINE B AS B.at > cut_time())"""


def test_a_query_that_names_it_depends_on_the_time_of_the_cut() -> None:
    assert definition(RECENT).is_timed
    assert definition("SELECT id, CUT_TIME() AS t FROM shop.orders").is_timed
    assert not definition("SELECT id, cut_time FROM shop.orders").is_timed


def test_it_is_a_constant_at_a_cut() -> None:
    one = at_time(definition(RECENT), NOON)

    constant = "CAST('2024-01-31 12:00:00.123000+00:00' AS TIMESTAMPTZ)"
    assert constant in one.postgres
    assert constant in one.duckdb
    assert one.is_timed
    assert one.hash == definition(RECENT).hash
    assert at_time(definition("SELECT id FROM shop.orders"), NOON).postgres.count("CAST") == 0


def test_it_is_in_utc_whatever_the_zone_is() -> None:
    there = NOON.astimezone(timezone(timedelta(hours=5)))

    assert at_time(definition(RECENT), there) == at_time(definition(RECENT), NOON)


@pytest.mark.parametrize("time", [None, NOON])
def test_without_a_time_no_engine_takes_it(time: datetime | None) -> None:
    """A constant of our own instead would be an answer."""
    text = at_time(definition("SELECT id, cut_time() AS t FROM shop.orders"), time).duckdb

    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA shop; CREATE TABLE shop.orders (id INTEGER)")
        connection.execute("INSERT INTO shop.orders VALUES (1)")
        if time is None:
            with pytest.raises(duckdb.CatalogException, match=r"(?i)cut_time"):
                connection.execute(text)
        else:
            assert connection.execute(text).fetchall() == [(1, NOON)]


def test_the_hash_tells_it_from_others() -> None:
    other = RECENT.replace("cut_time()", "TIMESTAMPTZ '2024-01-31 12:00:00+00'")

    assert definition(f"-- the last week\n{RECENT}").hash == definition(RECENT).hash
    assert definition(other).hash != definition(RECENT).hash


def test_it_has_no_scope() -> None:
    """A row of an input that does not change comes and goes with the time."""
    text = "SELECT who, count(*) AS n FROM shop.orders WHERE at > cut_time() GROUP BY who"
    columns = {table: ["who", "at"] for table in definition(text).inputs}

    assert definition_scope(definition(text), columns) == Whole("cut_time() differs at each cut")


def test_a_group_may_be_of_it() -> None:
    text = "SELECT cut_time() AS t, count(*) AS n FROM shop.orders GROUP BY 1"

    assert "GROUP BY CAST('2024" in at_time(definition(text), NOON).duckdb


@pytest.mark.parametrize(
    ("text", "place", "message", "remedy"),
    [
        ("SELECT a, now() AS t FROM s.t", (1, 11), "now() is", "use cut_time(), the time of the"),
        ("SELECT a, current_date AS t FROM s.t", (1, 11), "CURRENT_DATE is", "use cut_time()"),
        ("SELECT a, current_timestamp AS t FROM s.t", (1, 11), "CURRENT_TIME", "use cut_time()"),
        ("SELECT a, localtimestamp AS t FROM s.t", (1, 11), "LOCALTIMESTAMP", "use cut_time()"),
        ("SELECT a, cut_time(1) AS t FROM s.t", (1, 11), "cut_time() takes no", "write cut_time()"),
        ("SELECT a FROM s.t,\n cut_time() AS c", (2, 2), "cut_time() is no table", "write it whe"),
        ('SELECT "cut_time"() AS t FROM s.t', (1, 8), '"CUT_TIME"() is refused', "docs/ref"),
        ("SELECT s.cut_time() AS t FROM s.t", (1, 8), "s.cut_time() is refused", "docs/ref"),
        ("SELECT cut_tim() AS t FROM s.t", (1, 8), "unknown function", "did you mean cut_time()?"),
        (AS_OF.format("cut_time()"), (1, 69), "AS OF cut_time() is", "leave FOR SYSTEM_TIME out"),
        (LATE, (2, 1), "late beside cut_time() is", "name cut_time() in a table over this one"),
        (
            PATTERN,
            (7, 67),
            "CUT_TIME() is refused in a pattern",
            "use a column, or name cut_time()",
        ),
    ],
)
def test_where_it_is_refused(text: str, place: tuple[int, int], message: str, remedy: str) -> None:
    found = problem(text)

    assert (found.line, found.column) == place
    assert found.message.startswith(message)
    assert found.remedy.startswith(remedy)


def test_a_history_has_no_query_that_could_name_it() -> None:
    (found,) = problems("/* ---\nkind: history\ntable: shop.orders\n--- */\nSELECT cut_time() AS t")

    assert "query" in found.message


def test_a_fold_does_not_know_it() -> None:
    text = """table = {
    "events": "s.e", "stream": "a", "version": "v", "columns": {"t": "timestamp"}
}


def apply(state, event):
    return {"t": cut_time()}
"""
    _, (found,) = read_file("marts.x.py", "marts.x.py", text)

    assert (found.line, found.message) == (7, "cut_time is refused in a fold")
    assert found.remedy == "name cut_time() in a view over the fold"


def test_beside_tables_as_they_were_it_is_the_time_of_the_cut(tmp_path: Path) -> None:
    past = "/* ---\nkind: history\ntable: shop.c\n--- */\n"
    joined = AS_OF.format("o.at") + " WHERE o.at > cut_time()"
    for name, text in (("past", past), ("joined", joined)):
        (tmp_path / f"marts.{name}.sql").write_text(text)

    found = declared(tmp_path, [TableId("shop", "orders"), TableId("shop", "c")])

    assert not found.problems
    one = at_time(found.definitions[-1], NOON)
    assert (str(one.table), one.inputs[-1]) == ("marts.joined", TableId("marts", "past"))
    assert one.is_timed
    assert "CAST('2024-01-31 12:00" in one.duckdb
    assert "cut_time" not in one.duckdb.lower()
