"""Which names are refused, and that everything else is taken."""

import json
from itertools import combinations

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.events.names import (
    OF_ENGINES,
    avro_name,
    case_twins,
    column_refusals,
    readable_schema,
    table_collisions,
    table_refusal,
)
from cdc.events.schema import belongs_to
from cdc.tables import TableId

TABLE = TableId("shop", "orders")
KEPT = [
    *("before", "after", "op", "source", "ts_ms", "transaction", "key", "value", "offset"),
    *("partition", "timestamp", "topic", "row", "at", "gone", "one", "target", "filepath"),
    *("_change_type", "_commit_version", "_commit_timestamp", "__op", "9a", "0", "é", "😀"),
    *("a b", "a.c", "a;d", "a,e", "a{f}", "(g)", "a\th", "a\ni", "j=", "${env:HOME}", "k'", 'l"'),
]
names = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=63
)


def reasons(*columns: str) -> list[str]:
    return [found.reason for found in column_refusals(TABLE, columns)]


def test_the_words_of_all_that_comes_between_are_names_like_others() -> None:
    assert reasons(*KEPT) == []


@pytest.mark.parametrize("name", sorted(OF_ENGINES))
@pytest.mark.parametrize("spelled", [str.lower, str.upper])
def test_a_column_of_the_engines_own_is_named(name: str, spelled: type[str]) -> None:
    (reason,) = reasons("id", spelled(name))

    assert reason == f"column {spelled(name)}: Spark and Delta call a column of their own so"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a", "A"),
        ("a-b", "a b"),
        ("é", "ü"),
        ("9", "_9"),
        ("😀", "__"),
        ("😀", "é-"),
        ("Ä", "ä"),
        ("\u0131", "I"),
        ("\u0130", "i"),
        ("\u212a", "k"),
    ],
)
def test_two_columns_of_one_name_are_named(one: str, other: str) -> None:
    assert reasons(one, other) == [
        f"columns {one} and {other} have one name in Avro or in the lake"
    ]


@given(names)
def test_a_name_is_one_that_avro_takes(name: str) -> None:
    """As long as the connector's in UTF-16, and a name by the rule of Avro."""
    made = avro_name(name)

    assert fastavro.parse_schema(
        {"type": "record", "name": "r", "fields": [{"name": made, "type": "int"}]}
    )
    assert len(made) - made.startswith("_") <= len(name.encode("utf-16-be")) // 2


@given(st.lists(names, unique=True, max_size=6))
def test_what_is_taken_has_a_name_of_its_own_everywhere(columns: list[str]) -> None:
    """In Avro, in Spark, which ignores case, and beside the columns of ours and of the engines."""
    if reasons(*columns):
        return
    assert len({avro_name(name).lower() for name in columns}) == len(columns)
    assert len({name.lower() for name in columns}) == len(columns)
    assert not {name.lower() for name in columns} & OF_ENGINES
    assert not any(name.lower().startswith("_cdc_") for name in columns)


@given(st.lists(names, unique=True, min_size=2, max_size=6))
def test_a_refusal_is_of_a_column_or_of_two(columns: list[str]) -> None:
    """Any table that is refused has one or two columns that are refused by themselves."""
    alone = any(reasons(name) for name in columns)
    assert bool(reasons(*columns)) == (
        alone or any(reasons(*pair) for pair in combinations(columns, 2))
    )


@pytest.mark.parametrize("name", ["orders", "9lives", "0", "-", "_", "a-b", "Value", "Envelope"])
def test_names_of_tables_that_are_taken(name: str) -> None:
    assert table_refusal(TableId("shop", name)) is None
    assert table_refusal(TableId(name, "orders")) is None


@pytest.mark.parametrize(
    ("schema", "name", "reason"),
    [
        *(
            ("shop", odd, "has a name that cannot be a topic's")
            for odd in ("a b", "é", "..", "a/b")
        ),
        ("%2e", "t", "has a name that cannot be a topic's"),
        ("_wal2lake", "t", "the directory _wal2lake of the lake is ours"),
        ("_WAL2LAKE", "t", "the directory _wal2lake of the lake is ours"),
        ("shop", "_delta_log", "a directory _delta_log is a part of Delta's"),
    ],
)
def test_names_of_tables_that_are_not(schema: str, name: str, reason: str) -> None:
    found = table_refusal(TableId(schema, name))

    assert found is not None
    assert found.reason.endswith(reason)


def test_two_tables_with_one_topic_for_kafka_are_named_once() -> None:
    first, second = TableId("a_b", "c"), TableId("a", "b_c")
    (found,) = table_collisions([first, TableId("a", "bc"), second])

    assert found.table == second
    assert str(first) in found.reason


def test_tables_that_differ_by_case_are_two() -> None:
    tables = [TableId("shop", "T"), TableId("shop", "t"), TableId("SHOP", "u")]

    assert list(table_collisions(tables)) == []
    assert list(case_twins(tables)) == [(tables[0], tables[1])]


def schema_of(table: TableId) -> str:
    """As the connector writes it: a part of a name may begin with a digit."""
    namespace = f"w.{table.schema}.{table.name}"
    row = {"type": "record", "name": "Value", "fields": [{"name": "9x", "type": "int"}][:0]}
    place = {
        "type": "record",
        "name": "Source",
        "namespace": "io.debezium.connector.postgresql",
        "fields": [
            {"name": "schema", "type": "string"},
            {"name": "table", "type": "string"},
            {"name": "lsn", "type": ["null", "long"], "default": None},
        ],
    }
    block = {
        "type": "record",
        "name": "block",
        "namespace": "event",
        "fields": [{"name": "id", "type": "string"}],
    }
    return json.dumps(
        {
            "type": "record",
            "name": "Envelope",
            "namespace": namespace,
            "fields": [
                {"name": "before", "type": ["null", row], "default": None},
                {"name": "after", "type": ["null", f"{namespace}.Value"], "default": None},
                {"name": "source", "type": place},
                {"name": "op", "type": "string"},
                {"name": "transaction", "type": ["null", block], "default": None},
            ],
            "connect.name": f"{namespace}.Envelope",
        }
    )


@pytest.mark.parametrize("table", [TableId("9s", "9lives"), TableId("shop", "0")])
def test_a_schema_of_a_name_with_a_digit_first_is_made_one_of_avro(table: TableId) -> None:
    made = readable_schema(schema_of(table))

    assert fastavro.parse_schema(json.loads(made))
    assert belongs_to(made, table.topic("w"))
    assert json.loads(made)["connect.name"].startswith(f"w.{table}")


def test_any_other_schema_stays_as_it_is() -> None:
    for text in (schema_of(TABLE), "7", "no JSON"):
        assert readable_schema(text) == text


def test_a_schema_whose_name_begins_with_a_digit_becomes_readable() -> None:
    row = {"type": "record", "name": "Value", "namespace": "p.2s.9lives", "fields": []}
    again = {"name": "after", "type": ["null", "p.2s.9lives.Value"]}
    fields = [{"name": "before", "type": ["null", row]}, again]
    written = {"type": "record", "name": "Envelope", "namespace": "p.2s.9lives", "fields": fields}
    made = readable_schema(json.dumps(written))
    assert "p._2s._9lives.Value" in made
    fastavro.parse_schema(json.loads(made))
    plain = json.dumps(written).replace("2s", "s").replace("9lives", "lives")
    assert readable_schema(plain) == plain
