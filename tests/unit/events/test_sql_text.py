"""Tests that quoted SQL means exactly its text, with sqlglot and DataFusion as the parsers."""

from collections.abc import Callable
from typing import TypeVar

import pyarrow as pa
import pytest
import sqlglot
from deltalake import QueryBuilder
from hypothesis import example, given
from hypothesis import strategies as st

from cdc.events.values import sql_text

ODD = [
    "",
    "${env:HOME}",
    "${spark.app.name}",
    "$",
    "it's",
    '"',
    "\\",
    "\\'",
    "\\u0041",
    "`",
    "a`b",
    "a\nb\r\t\x01",
    "100 %_",
    "' OR 1=1 --",
    "/* x */",
    "é ü 中 😀",
    "{c} {}",
]
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


Test = TypeVar("Test", bound=Callable[..., None])


def odd(test: Test) -> Test:
    """Run the test with each text of ``ODD`` beside the random ones."""
    for text in ODD:
        test = example(text)(test)
    return test


@odd
@given(texts)
def test_a_string_of_spark_has_no_quote_or_dollar_inside(text: str) -> None:
    literal = sql_text.spark_string(text)

    assert literal[0] == literal[-1] == "'"
    assert not set(literal[1:-1]) & set("'$\n")
    assert literal[1:-1].encode().decode() == literal[1:-1]
    assert _unescaped(literal[1:-1]) == text


def _unescaped(text: str) -> str:
    """Undo the escapes as Spark's parser does; all of them have four hexadecimal digits."""
    first, *rest = text.split("\\u")
    return first + "".join(chr(int(part[:4], 16)) + part[4:] for part in rest)


@odd
@given(texts)
def test_a_string_of_datafusion_is_its_text(text: str) -> None:
    assert answered(f"SELECT {sql_text.fusion_string(text)} AS x")[0] == {"x": text}


@odd
@given(texts.filter(bool))
def test_a_name_of_datafusion_is_its_text(text: str) -> None:
    if not text:
        return
    assert list(answered(f"SELECT 1 AS {sql_text.fusion_name(text)}")[0]) == [text]


def answered(query: str) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = pa.table(QueryBuilder().execute(query).read_all()).to_pylist()
    return rows


@odd
@given(texts.filter(bool))
def test_names_of_spark_and_of_postgres_are_read_back(text: str) -> None:
    if not text:
        return
    spark = sqlglot.parse_one(f"SELECT {sql_text.spark_name(text)}", dialect="spark")
    postgres = sqlglot.parse_one(f"SELECT {sql_text.postgres_name(text)}", dialect="postgres")

    assert spark.expressions[0].name == text
    assert postgres.expressions[0].name == text


@pytest.mark.parametrize("text", ODD)
def test_a_name_in_codes_has_no_character_that_is_special_in_a_configuration(text: str) -> None:
    name = sql_text.postgres_name_in_codes(text)

    assert not set(name) & set("${}:,`'") - {"&"}
