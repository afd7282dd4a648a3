"""The expressions in the connector's lists match the intended name and no other, in Java.

The connector compiles each of them so that case is ignored.
"""

from collections.abc import Callable

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from cdc.source.connector.settings import pattern
from cdc.tables import TableId

pytestmark = pytest.mark.spark

CASE_INSENSITIVE = 2  # java.util.regex.Pattern's
NAMES = st.text(
    st.one_of(
        st.sampled_from("aA.(?i:)*+[]{}\\|^$,#& \t\n\"'`-_ßẞ\u0131\u0130\u017f\u212aéÉ"),
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
    ),
    min_size=1,
    max_size=12,
)


Matches = Callable[[str, str], bool]


@pytest.fixture(scope="package")
def matches(spark: SparkSession) -> Matches:
    """Return a function that matches an expression with a whole name, as the connector does."""
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    java = jvm.java.util.regex.Pattern

    def match(expression: str, name: str) -> bool:
        return bool(java.compile(expression, CASE_INSENSITIVE).matcher(name).matches())

    return match


@settings(max_examples=150)
@given(schema=NAMES, name=NAMES, data=st.data())
def test_a_pattern_names_one_table_in_one_case(
    matches: Matches, schema: str, name: str, data: st.DataObject
) -> None:
    table = TableId(schema, name)
    other = data.draw(
        st.one_of(
            st.sampled_from([str(table).swapcase(), str(table).lower(), str(table).upper()]),
            st.builds(lambda a, b: f"{a}.{b}", NAMES, NAMES),
        )
    )
    event("differs by case" if other.lower() == str(table).lower() != other else "another")

    assert matches(pattern(table), str(table))
    assert matches(pattern(table), other) == (other == str(table))
    assert matches(pattern(table, "c"), f"{table}.c")
    assert not matches(pattern(table, "c"), f"{table}.C")
    assert "," not in pattern(table, name)
