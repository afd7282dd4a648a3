"""Conditions between rows mean what they mean in SQL; DuckDB's lag() is the witness."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product

import pyarrow as pa
import pytest

from cdc.derive.engine.calculator import calculator
from cdc.derive.engine.matches import find_matches
from cdc.derive.pattern.measures import MATCHES, ROW, ROWS
from cdc.derive.pattern.pattern import ReadPattern
from cdc.errors import CdcError, ErrorKind
from cdc.tables import TableId
from tests.unit.derive.pattern.reading import read_text

TABLE = TableId("s", "t")
VALUES: dict[str, tuple[pa.DataType, Sequence[object]]] = {
    "i": (pa.int64(), [None, -3, 0, 2, 2**53 + 1]),
    "m": (pa.decimal128(20, 3), [None, Decimal("-0.001"), Decimal("2.000"), Decimal("0.1")]),
    "d": (pa.float64(), [None, float("nan"), float("inf"), -0.0, 0.0, 0.1, 2.0**53]),
    "t": (pa.string(), [None, "", "a", "B", "ä", "\uffff", "\U00010000"]),
    "b": (pa.bool_(), [None, True, False]),
    "w": (
        pa.timestamp("us", "UTC"),
        [None, datetime(1969, 12, 31, 23, 59, tzinfo=UTC), datetime(2024, 3, 31, tzinfo=UTC)],
    ),
    "day": (pa.date32(), [None, date(1969, 12, 31), date(2024, 3, 31)]),
}
CONDITIONS = [
    "prev({0}) = {0}",
    "prev({0}) <> {0}",
    "prev({0}) < {0}",
    "NOT prev({0}) <= {0}",
    "prev({0}) >= {0} OR prev({0}) IS NULL",
    "(prev({0}) > {0}) IS NOT TRUE",
    "(prev({0}) > {0}) IS FALSE",
    "prev({0}) IS DISTINCT FROM {0}",
    "prev({0}) IS NOT DISTINCT FROM {0}",
    "prev({0}) BETWEEN {0} AND prev({0}, 2)",
    "prev({0}) NOT IN ({0}, prev({0}, 2))",
    "prev({0}) IN ({0}, prev({0}, 3))",
    "coalesce(prev({0}), {0}) = {0}",
    "CASE WHEN prev({0}) > {0} THEN NULL WHEN prev({0}) = {0} THEN 1 ELSE 2 END <> 1",
    "CASE prev({0}) WHEN {0} THEN TRUE END",
    "prev({0} IS NULL) AND ({0} = {0}) OR prev({0}) > prev({0}, 2)",
]
TYPED = [
    ("i", "prev(i) + i > 0 AND prev(i) - i < 1"),
    ("i", "prev(i) * 2 = i OR -prev(i) > 1.5"),
    ("i", "prev(i % 2) = i % 2"),
    ("m", "prev(m) + m = 2.1 OR prev(m) * m = -0.0001"),
    ("m", "prev(m::double precision) < m"),
    ("d", "prev(d) + d > 0.1"),
    ("d", "prev(d) * 2.0 >= d"),
    ("d", "prev(d) > 9007199254740992"),
    ("t", "prev(t || 'x') > t"),
    ("t", "prev(length(t)) < length(t)"),
    ("b", "prev(b) AND b OR NOT prev(b)"),
    ("w", "w - prev(w) > INTERVAL '3 days'"),
    ("w", "prev(w) + INTERVAL '1 minute' = w OR w > prev(w) - INTERVAL '1 hour'"),
    ("w", "prev(w) < TIMESTAMP '2000-01-01 00:00:00'"),
    ("day", "prev(day) < TIMESTAMP '2000-01-01 00:00:00'"),
    ("day", "prev(day) + INTERVAL '1 day' > day"),
]
EVERY = [(c, text.format(c)) for c, text in product(VALUES, CONDITIONS)] + TYPED


def read(condition: str) -> ReadPattern:
    return read_text(
        "SELECT * FROM s.t MATCH_RECOGNIZE (ORDER BY n MEASURES n AS n PATTERN (x) "
        f"DEFINE x AS {condition})"
    )


def table(column: str) -> pa.Table:
    """Return rows in which every value follows every other; the first one is not NULL."""
    kind, values = VALUES[column]
    rows = [value for pair in product(values, values) for value in pair][::-1]
    return pa.table({"n": pa.array(range(len(rows)), pa.int64()), column: pa.array(rows, kind)})


def in_windows(condition: str) -> str:
    """Return the condition with each prev(...) as lag(...) OVER (ORDER BY n)."""
    text, at = "", 0
    while (begin := condition.find("prev(", at)) >= 0:
        depth, end = 1, begin + len("prev(")
        while depth:
            depth += {"(": 1, ")": -1}.get(condition[end], 0)
            end += 1
        inner = condition[begin + len("prev") : end]
        text += f"{condition[at:begin]}lag{inner} OVER (ORDER BY n)"
        at = end
    return text + condition[at:]


@pytest.mark.parametrize(("column", "condition"), EVERY)
def test_a_condition_holds_where_it_holds_in_sql(column: str, condition: str) -> None:
    found = read(condition)
    with calculator(64) as database:
        database.load(TABLE, table(column))
        find_matches(database, TABLE, found.pattern, [])
        rows = database.values(f"SELECT n FROM {ROWS} JOIN {MATCHES} USING ({ROW}) ORDER BY n")
        wanted = database.values(
            f"SELECT n FROM (SELECT n, {in_windows(condition)} AS yes FROM s.t) "
            "WHERE yes ORDER BY n"
        )

    assert rows == wanted


@pytest.mark.parametrize(
    ("column", "condition", "message"),
    [
        ("t", "prev(t) > n", "> has text and a number"),
        ("w", "prev(w) < '2024-01-01'", "< has a time and text"),
        ("w", "prev(w) + prev(w) > w", "+ has a time and a time"),
        ("t", "sum(t) > 'a'", "sum of text"),
        ("b", "max(b)", "max of a boolean"),
        ("i", "prev(i) + i", "the condition of x is refused: it is a number, and no boolean"),
        ("i", "prev(i) = 1 AND i", "AND has a boolean and a number"),
        ("i", "coalesce(prev(i), 'a') = 1", "COALESCE has a number and text"),
        ("i", "nope > 1", 'Referenced column "nope" not found'),
    ],
)
def test_types_that_do_not_fit_are_refused(column: str, condition: str, message: str) -> None:
    found = read(condition)
    with calculator(64) as database:
        database.load(TABLE, table(column).slice(0, 0))
        with pytest.raises(CdcError) as error:
            find_matches(database, TABLE, found.pattern, [])

    assert error.value.kind is ErrorKind.CONFIG
    assert message in error.value.message
