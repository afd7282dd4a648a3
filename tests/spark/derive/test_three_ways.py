"""Steps, the whole query and Spark have the same rows, whatever is defined and changes.

Rows are told apart as in ``derived verify``: numbers are equal at any scale. Spark groups 0 and -0
to 0, where DuckDB has one of them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from cdc.client.derived.verify import plain
from cdc.derive.definition.definition import Definition
from cdc.derive.scope.scope import Scope
from cdc.derive.spark.guards import SETTINGS
from cdc.derive.spark.printing import spark as printed
from tests.local_spark import INTERPRETED
from tests.unit.derive.scoped.grammar import SCHEMAS, World, queries, whole_queries, worlds
from tests.unit.derive.scoped.kept_rows import KeptRows, defined, scope_in_shop, table_of

CUTS: Final = {False: 30, True: 1_000}
"""How many cuts are compared at least, by whether the run is deep."""
SCOPED, WHOLE = "by a scope key", "as a whole"
MOST: Final = 3
"""So many cuts after the first one has a definition at most."""
Row = Mapping[str, Any]
TEXTS: Final = st.one_of(queries(), queries(), queries(), whole_queries())


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    made = spark.newSession()
    for name, value in {**INTERPRETED, **SETTINGS}.items():
        made.conf.set(name, value)
    return made


def test_they_have_the_same_rows(session: SparkSession, request: pytest.FixtureRequest) -> None:
    """Nothing that is drawn is refused, not even by Spark: an error fails the test."""
    least = CUTS[request.config.getoption("--deep")]
    seen: Counter[str] = Counter()

    @settings(max_examples=least // 2, suppress_health_check=list(HealthCheck))
    @given(text=TEXTS, cuts=worlds(MOST))
    def have_the_same_rows(text: str, cuts: list[World]) -> None:
        definition = defined(text)
        kept = KeptRows(definition, scope_in_shop(definition))
        kept.build(cuts[0])
        _compare(session, kept)
        for world in cuts[1:]:
            kept.step(world)
            _compare(session, kept)
        seen.update({"cuts": len(cuts), _class(kept): 1})

    have_the_same_rows()

    print(dict(seen))  # noqa: T201 - figures for who runs it
    assert seen["cuts"] >= least


def _class(kept: KeptRows) -> str:
    return SCOPED if isinstance(kept.scope, Scope) else WHOLE


def _compare(session: SparkSession, kept: KeptRows) -> None:
    whole = _multiset(kept.calculated())
    assert _multiset(kept.shown()) == whole
    assert _multiset(_by_spark(session, kept.definition, kept.world)) == whole


def _by_spark(session: SparkSession, definition: Definition, world: World) -> list[Row]:
    for table in definition.inputs:
        frame = session.createDataFrame(table_of(world, table))
        if "ts" in SCHEMAS[table].names:
            frame = frame.withColumn("ts", frame["ts"].cast("timestamp_ntz"))
        frame.createOrReplaceTempView(f"`{table}`")
    assert definition.query is not None
    return [*session.sql(printed(definition.query)).toArrow().to_pylist()]


def _multiset(rows: Iterable[Row]) -> Counter[str]:
    return Counter(repr({name: _exact(value) for name, value in row.items()}) for row in rows)


def _exact(value: object) -> object:
    return 0.0 if isinstance(value, float) and value == 0 else plain(value)


def test_a_row_that_differs_is_seen() -> None:
    rows: list[Row] = [{"a": 0.0, "b": None}, {"a": float("nan"), "b": 1}]

    assert _multiset(rows) == _multiset([{"a": -0.0, "b": None}, {"a": float("nan"), "b": 1}])
    assert _multiset(rows) != _multiset(rows[:1])
    assert _multiset(rows) != _multiset([*rows, rows[0]])
    assert _multiset(rows) != _multiset([{"a": 0.0, "b": 0}, rows[1]])
