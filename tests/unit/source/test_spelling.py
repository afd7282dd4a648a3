"""Test the SQL that spells a column's values, for each type of column."""

import pytest
from psycopg import sql

from cdc.client.verify.render import PLAIN
from cdc.events.values.lake_types import PgType
from cdc.events.values.pg_types import TYPES, Fidelity, type_rule
from cdc.source.rows.copy import expression, parsed
from cdc.source.rows.spelling import ODD_ARRAY, copied, spelled, spelling

OTHERWISE = {"money", "hstore"}
KEPT = sorted(name for name, found in TYPES.items() if found.fidelity is not Fidelity.REFUSED)
ARRAYS = sorted(name for name in KEPT if type_rule(name).arrays)


@pytest.mark.parametrize("name", [name for name in KEPT if name not in OTHERWISE])
def test_a_value_is_spelled_by_its_types_own_output(name: str) -> None:
    """It is the same spelling that verify compares with text columns of the lake."""
    assert spelling(PgType(name)) == PLAIN.sql


def test_a_user_defined_type_is_spelled_by_its_own_output() -> None:
    assert spelling(PgType("mood")) == PLAIN.sql


def test_a_masked_value_is_computed_by_postgres_and_the_salt_is_not_in_the_query() -> None:
    salted = f"current_setting('wal2lake.hash_salt') || ({PLAIN.sql})"
    hashed = f"encode(sha256(convert_to({salted}, 'UTF8')), 'hex')"

    assert spelling(PgType("text"), "hash 0a1b") == copied(PgType("text"), "hash 0a1b") == hashed
    assert copied(PgType("text"), "truncate 3") == f"left(({PLAIN.sql}), 3)"
    assert copied(PgType("text")) == "{c}"


def test_types_that_the_connector_writes_differently_are_spelled_like_it() -> None:
    assert spelling(PgType("money")) == "{c}::numeric::text"
    assert spelling(PgType("hstore")) == "{c}::json::text"


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_is_spelled_element_by_element_unless_it_is_odd(name: str) -> None:
    sql_text = spelling(PgType(f"_{name}"))

    assert "json_agg(CASE WHEN num_nulls(e) = 0 THEN format('%s', e) END ORDER BY i)" in sql_text
    assert f"array_ndims({{c}}) > 1 OR array_lower({{c}}, 1) <> 1 THEN '{ODD_ARRAY}'" in sql_text
    assert not ODD_ARRAY.startswith("[")


@pytest.mark.parametrize("kind", ["int4", "money", "hstore", "_text"])
@pytest.mark.parametrize("name", ["plain", 'a "b"', "{c}", "%s {}", "e"])
def test_a_column_of_any_name_is_quoted_in_its_place(kind: str, name: str) -> None:
    template = spelling(PgType(kind))
    composed = expression(sql.Identifier(name), template).as_string(None)
    quoted = '"' + name.replace('"', '""') + '"'

    assert composed.count(quoted) == template.count("{c}")
    assert composed == quoted.join(template.split("{c}"))


def test_an_element_of_an_array_is_spelled_under_the_given_name() -> None:
    assert spelled("e", PgType("int4")) == PLAIN.sql.replace("{c}", "e")


def test_null_the_empty_text_and_quoted_texts_differ_in_csv() -> None:
    block = b',"",NULL\n"a,""b""\r\n","\\.",\n'

    assert parsed(block, ["c0", "c1", "c2"]).to_pylist() == [
        {"c0": None, "c1": "", "c2": "NULL"},
        {"c0": 'a,"b"\r\n', "c1": "\\.", "c2": None},
    ]
