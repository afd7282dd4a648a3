"""Measures and conditions over the rows of a match have the values and types of SQL."""

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from cdc.derive.engine import matches as matches_module
from cdc.derive.engine.calculator import calculator
from cdc.derive.engine.matches import find_matches
from cdc.tables import TableId
from tests.unit.derive.pattern.reading import read_text

TABLE = TableId("s", "t")
ROWS = pa.table(
    {
        "n": pa.array([5, 1, 3, 2, 4, 6], pa.int64()),  # files have any order
        "k": ["c", "a", "b", "b", "b", "x"],
        "v": pa.array([None, 7, 3, None, 9, 1], pa.int32()),
        "m": pa.array([Decimal(i) / 4 for i in (1, 2, 3, 4, 5, 6)], pa.decimal128(8, 2)),
    }
)
OUTER = "a AS k = 'a', b AS k = 'b', c AS k = 'c'"


def calculated(
    measures: str, define: str = OUTER, pattern: str = "a b+ c"
) -> list[tuple[object, ...]]:
    found = read_text(
        f"SELECT * FROM s.t MATCH_RECOGNIZE (ORDER BY n MEASURES {measures} "
        f"AFTER MATCH SKIP TO NEXT ROW PATTERN ({pattern}) DEFINE {define})"
    )
    with calculator(64) as database:
        database.load(TABLE, ROWS)
        find_matches(database, TABLE, found.pattern, ["n"])
        return sorted(database.values(found.duckdb), key=repr)


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        ("a.n", 1),
        ("n", 5),  # of the last row of the match
        ("b.n", 4),
        ("b.v", 9),
        ("first(b.n)", 2),
        ("first(b.v)", None),  # the first row's, though it is NULL
        ("last(v)", None),
        ("first(v) + 1", 8),
        ("first(b.n * 10 + b.n)", 22),
        ("count(*)", 5),
        ("count(b.n)", 3),
        ("count(b.v)", 2),
        ("sum(b.v)", 12),
        ("sum(v)", 19),
        ("min(b.v)", 3),
        ("max(v)", 9),
        ("sum(c.v)", None),
        ("sum(b.m)", Decimal("3.00")),
        ("c.n - a.n", 4),
        ("coalesce(c.v, count(b.v))", 2),
        ("first(b.k) || '-' || c.k", "b-c"),
        ("sum(b.n)::numeric(10, 2)", Decimal("9.00")),
        ("round(max(b.m) - min(b.m), 1)", Decimal("0.5")),
        ("first(b.n)::text || count(*)::text", "25"),
        ("c.n IN (b.n + 1, a.n)", True),
        ("NOT (b.v BETWEEN a.v AND c.v)", None),
        ("a.k LIKE 'a%' AND length(b.k) = 1", True),
        ("greatest(a.v, b.v, c.v) % 5", 4),
        ("CASE WHEN max(b.v) > a.v THEN 'up' ELSE 'down' END", "up"),
    ],
)
def test_a_measure_is_of_the_rows_of_its_variable(measure: str, value: object) -> None:
    assert calculated(f"{measure} AS y") == [(value,)]


def test_a_variable_without_rows_has_no_value_and_a_count_of_none() -> None:
    measures = "z.n AS n, first(z.n) AS f, count(z.n) AS c, sum(z.n) AS s"

    assert calculated(measures, f"{OUTER}, z AS k = 'z'", "a b+ z? c") == [(None, None, 0, None)]


def test_types_are_those_of_the_columns() -> None:
    found = read_text(
        "SELECT * FROM s.t MATCH_RECOGNIZE (PARTITION BY k ORDER BY n MEASURES v AS v, "
        "count(*) AS c, sum(v) AS s, sum(m) AS sm, max(m) AS mm PATTERN (x) DEFINE x AS n > 0)"
    )
    with calculator(64) as database:
        database.load(TABLE, ROWS)
        find_matches(database, TABLE, found.pattern, ["n"])
        outputs = {output.name: output.type for output in database.outputs(found.duckdb)}

    assert found.outputs == tuple(outputs)
    assert outputs == {
        "k": "VARCHAR",
        "v": "INTEGER",
        "c": "BIGINT",
        "s": "DECIMAL(38,0)",
        "sm": "DECIMAL(38,2)",
        "mm": "DECIMAL(8,2)",
    }


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("count(*) < 4", [1, 2, 3]),
        ("count(y.v) < 2", [1, 2]),
        ("sum(y.v) < 13 OR y.v IS NULL", [1, 2, 3]),
        ("y.n - first(y.n) < 2", [1, 2]),
        ("first(n) + 2 >= n", [1, 2, 3]),
        ("last(y.n) <= 2", [1, 2]),
        ("y.n < 3 AND y.v > prev(y.n, 1) IS NOT FALSE", [1, 2]),
        ("min(y.v) = 7", [1, 2]),
        ("max(v) < 9", [1, 2, 3]),
        ("a.n IS NULL", [1, 2, 3, 4, 5, 6]),
        ("coalesce(a.n, 2) >= n", [1, 2]),
        ("a.n * 2 IS NULL AND n < 3", [1, 2]),
    ],
)
def test_a_condition_sees_the_match_up_to_the_current_row(condition: str, rows: list[int]) -> None:
    (found, *_) = calculated("first(n) AS a, last(n) AS z", f"y AS {condition}", "y+ | a")

    assert found == (rows[0], rows[-1])


def test_a_condition_sees_the_last_row_of_another_variable() -> None:
    define = "a AS k = 'a', b AS b.n - a.n < 3, c AS c.n > last(b.n) AND prev(b.n, 1) = 2"

    assert calculated("a.n AS a, b.n AS b, c.n AS c", define) == [(1, 3, 4)]


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_a_partition_may_be_read_and_written_in_several_chunks(
    monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(matches_module, "_CHUNK", chunk)
    define = "y AS y.n - prev(y.n) = 1 OR prev(y.n) IS NULL"

    found = calculated("first(n) AS a, last(n) AS z, count(*) AS n", define, "y{2} z")

    assert found == [(1, 3, 3), (2, 4, 3), (3, 5, 3), (4, 6, 3)]
    assert calculated("a.n AS a, c.n AS c") == [(1, 5)]


@pytest.mark.parametrize(("days", "found"), [(1, []), (2, [(3,)]), (3, [(3,)])])
def test_dates_may_bound_a_match_too(days: int, found: list[tuple[int]]) -> None:
    text = (
        "SELECT * FROM s.t MATCH_RECOGNIZE (ORDER BY day MEASURES count(*) AS n "
        "PATTERN (x{3}) DEFINE x AS n > 0)"
    )
    read = read_text(text, within=days * 86_400_000_000)
    dates = [date(1969, 12, 31), date(1970, 1, 1), date(1970, 1, 2)]
    with calculator(64) as database:
        database.load(TABLE, pa.table({"day": dates, "n": [1, 2, 3]}))
        find_matches(database, TABLE, read.pattern, ["n"])

        assert database.values(read.duckdb) == found
