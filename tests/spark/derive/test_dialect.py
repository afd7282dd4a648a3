"""Every entry of the allow-list means the same in Spark as in DuckDB, or Spark refuses it by name.

``tests/source/derive`` compares DuckDB with Postgres on the same rows.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

import duckdb
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc.derive.definition.definition import Definition
from cdc.derive.spark.guards import REFUSED as GUARDED
from cdc.derive.spark.guards import SETTINGS
from cdc.derive.spark.printing import spark as printed
from tests.source.derive.cases import CASES
from tests.source.derive.edge_rows import ROWS, fill_duckdb
from tests.source.derive.test_dialect import FAILED, Rows, answers, exact, read

REFUSED: Final = {
    **dict.fromkeys(("floor(f)",), "floor of double precision"),
    **dict.fromkeys(("ceil(f)",), "ceil of double precision"),
    **dict.fromkeys(
        ("dt - dt", "dt - DATE '1970-01-01'", "dt - cut_time()::date"), "a date minus a date"
    ),
    **dict.fromkeys(
        ("INTERVAL '7 hours' * e", "(ts - TIMESTAMP '2024-01-01') * 1.5"),
        "an interval times a number with a fraction",
    ),
    **dict.fromkeys(
        (
            "ts AT TIME ZONE 'Europe/Berlin'",
            "ts AT TIME ZONE 'America/New_York'",
            "ts AT TIME ZONE 'Asia/Kolkata'",
        ),
        "AT TIME ZONE of a timestamp without zone",
    ),
    "o::integer": "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
    "SELECT id, n NOT IN (SELECT k FROM dialect.w WHERE k IS NOT NULL) AS x FROM dialect.v": (
        "IN (SELECT ...) outside WHERE"
    ),
}
"""What Spark cannot say with the same meaning, and the words of its guard or of Spark."""
SIGNLESS: Final = frozenset({"SELECT f, count(*) AS c FROM dialect.v WHERE id <> 2 GROUP BY f"})
"""Where Spark has 0 in place of -0, which is equal."""


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        fill_duckdb(connection)
        yield connection


@pytest.fixture(scope="module")
def session(spark: SparkSession, duck: duckdb.DuckDBPyConnection) -> SparkSession:
    made = spark.newSession()
    for name, value in SETTINGS.items():
        made.conf.set(name, value)
    for table in "vwmxs":
        rows = duck.execute(f"SELECT * FROM dialect.{table}").to_arrow_table()
        frame = made.createDataFrame(rows)
        for field in rows.schema:
            if field.type == pa.timestamp("us"):
                frame = frame.withColumn(field.name, frame[field.name].cast("timestamp_ntz"))
        frame.createOrReplaceTempView(f"`dialect.{table}`")
    return made


@pytest.mark.parametrize("entry", CASES)
def test_an_entry_means_the_same(
    entry: str, session: SparkSession, duck: duckdb.DuckDBPyConnection
) -> None:
    """Spark gets the rows for which DuckDB has an answer: without one the table is stopped."""
    whole = [text for text in CASES[entry] if text.startswith(("SELECT", "WITH"))]
    for text in whole:
        definition = read(text)
        (expected,) = answers(duck, definition.duckdb, [""])
        if expected != FAILED:
            _compare(text, _asked(session, definition), expected)
    for rows, texts in _together(duck, {*CASES[entry]} - {*whole}):
        listed = ", ".join(f"{text} AS x{n}" for n, text in enumerate(texts))
        numbers = ", ".join(map(str, rows))
        definition = read(f"SELECT id, {listed} FROM dialect.v WHERE id IN ({numbers})")
        found = _asked(session, definition)
        for n, (text, expected) in enumerate(texts.items()):
            one = found if isinstance(found, str) else _columns(found, 0, n + 1)
            _compare(text, one, expected)


def test_what_is_refused_is_a_case() -> None:
    every = {text for texts in CASES.values() for text in texts}

    assert {*REFUSED, *SIGNLESS} <= every


def _together(
    duck: duckdb.DuckDBPyConnection, texts: set[str]
) -> list[tuple[tuple[int, ...], dict[str, Rows]]]:
    """Return rows, and the expressions that DuckDB can answer for just these, with its answers.

    They are asked for together, because a query of Spark takes long; what it refuses is alone.
    """
    numbers = [row[0] for row in ROWS]
    together: dict[tuple[int, ...], dict[str, Rows]] = {}
    alone = []
    for text in sorted(texts):
        query = read(f"SELECT id, {text} AS x FROM dialect.v").duckdb
        found = answers(duck, query, [f" WHERE id = {number}" for number in numbers])
        good = tuple(n for n, rows in zip(numbers, found, strict=True) if rows != FAILED)
        answered = sum((rows for rows in found if rows != FAILED), Counter())
        if text in REFUSED:
            alone.append((good, {text: answered}))
        elif good:
            together.setdefault(good, {})[text] = answered
    return [*together.items(), *alone]


def _columns(rows: Rows, *places: int) -> Rows:
    """Return some columns of rows that have a number each."""
    return Counter(tuple(row[place] for place in places) for row in rows)


def _compare(text: str, found: Rows | str, expected: Rows) -> None:
    if text in REFUSED:
        assert found in {f"{GUARDED} {REFUSED[text]}", REFUSED[text]}, text
    else:
        assert _signless(text, found) == _signless(text, expected), text


def _asked(session: SparkSession, definition: Definition) -> Rows | str:
    """Return the rows, or what the guard says, or the name of Spark's own error."""
    assert definition.query is not None
    try:
        found = session.sql(printed(definition.query)).toArrow()
    except PySparkException as error:
        if error.getCondition() == "USER_RAISED_EXCEPTION":
            return str((error.getMessageParameters() or {})["errorMessage"])
        return str(error.getCondition())
    return Counter(
        tuple(exact(value) for value in row)
        for row in zip(*(column.to_pylist() for column in found.columns), strict=True)
    )


def _signless(text: str, rows: Rows | str) -> Rows | str:
    if text not in SIGNLESS or isinstance(rows, str):
        return rows
    zero, negative = exact(0.0), exact(-0.0)
    return Counter({tuple(zero if v == negative else v for v in row): n for row, n in rows.items()})
